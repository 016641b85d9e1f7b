/* Lower bound for what a Python binding of a pair of calls can cost: the same calls by a hand-written extension module. It
 * converts its arguments, releases the GIL around every call that can wait, creates the objects that the caller sees and
 * frees pool memory without invalidating a capture. It does nothing else: no other argument types, no context is made
 * current, no error messages, no protection against a concurrent close.
 *
 * Each of these calls can wait for work that needs the GIL (H200, driver 580). Creating and destroying an event waits while
 * another thread is in cuMemFree, cuModuleLoadData or cuMemHostAlloc, or finds the queue of a stream full; cuMemFreeAsync
 * waits during cuMemHostAlloc and while its own stream's queue is full. An allocation was never observed waiting, but its
 * pool may have to grow.
 *
 * Driver 580 refuses cuMemFreeAsync to a thread that captures a stream, and to all threads while one captures globally, and
 * invalidates the capture. The thread is therefore in relaxed mode while it frees.
 *
 * lower_bound_side.py uses it. cc -O2 -shared -fPIC -I<Python's headers> -o lower_bound.so lower_bound.c
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef int (*fn_malloc)(unsigned long long *, size_t);
typedef int (*fn_free)(unsigned long long);
typedef int (*fn_stream)(void **);
typedef int (*fn_event)(void **, unsigned);
typedef int (*fn_destroy)(void *);
typedef int (*fn_allocate)(unsigned long long *, size_t, void *, void *);
typedef int (*fn_release)(unsigned long long, void *);
typedef int (*fn_exchange)(int *);

/* The arguments of setup(), in order. */
enum { MALLOC, FREE, MALLOC_HOST, FREE_HOST, STREAM_CREATE, STREAM_DESTROY, EVENT_CREATE, EVENT_DESTROY, ALLOCATE,
       RELEASE, EXCHANGE, POOL, STREAM, COUNT };
static void *given[COUNT];
/* The status of success, the result of a call without outputs, and an interned parameter name. */
static PyObject *success, *done, *stream_name;

#define WITHOUT_GIL(call)                                                                                              \
    Py_BEGIN_ALLOW_THREADS                                                                                             \
    status = (call);                                                                                                   \
    Py_END_ALLOW_THREADS                                                                                               \
    if (status != 0)                                                                                                   \
        return PyErr_Format(PyExc_RuntimeError, "status %d", status)

static PyObject *setup(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != COUNT)
        return PyErr_Format(PyExc_TypeError, "%d addresses", COUNT);
    for (int n = 0; n < COUNT; n++) {
        given[n] = PyLong_AsVoidPtr(arguments[n]);
        if (PyErr_Occurred())
            return NULL;
    }
    Py_RETURN_NONE;
}

/* The result of a binding: (status, value). Steals the reference to `value`. */
static PyObject *pair(PyObject *value)
{
    PyObject *result = value ? PyTuple_New(2) : NULL;
    if (!result) {
        Py_XDECREF(value);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, Py_NewRef(success));
    PyTuple_SET_ITEM(result, 1, value);
    return result;
}

static PyObject *allocate_with(void *function, PyObject *size)
{
    int status;
    unsigned long long address;
    size_t bytes = PyLong_AsSize_t(size);
    if (bytes == (size_t)-1 && PyErr_Occurred())
        return NULL;
    WITHOUT_GIL(((fn_malloc)function)(&address, bytes));
    return pair(PyLong_FromUnsignedLongLong(address));
}

static PyObject *free_with(void *function, PyObject *number)
{
    int status;
    unsigned long long address = PyLong_AsUnsignedLongLong(number);
    if (address == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    WITHOUT_GIL(((fn_free)function)(address));
    return Py_NewRef(done);
}

static PyObject *device_malloc(PyObject *m, PyObject *size) { return allocate_with(given[MALLOC], size); }
static PyObject *device_free(PyObject *m, PyObject *address) { return free_with(given[FREE], address); }
static PyObject *host_malloc(PyObject *m, PyObject *size) { return allocate_with(given[MALLOC_HOST], size); }
static PyObject *host_free(PyObject *m, PyObject *address) { return free_with(given[FREE_HOST], address); }

/* An object that holds one handle or address. */
typedef struct {
    PyObject_HEAD
    void *value;
} Object;

static PyObject *close_event(PyObject *self, PyObject *ignored)
{
    int status;
    Object *event = (Object *)self;
    void *handle = event->value;
    event->value = NULL;
    if (handle) {
        WITHOUT_GIL(((fn_destroy)given[EVENT_DESTROY])(handle));
    }
    Py_RETURN_NONE;
}

/* CU_STREAM_CAPTURE_MODE_RELAXED. */
enum { RELAXED = 2 };

static int release(void *address)
{
    int mode = RELAXED;
    fn_exchange exchange = (fn_exchange)given[EXCHANGE];
    int status = exchange(&mode);
    if (status == 0)
        status = ((fn_release)given[RELEASE])((unsigned long long)address, given[STREAM]);
    int restored = exchange(&mode);
    return status ? status : restored;
}

static PyObject *close_buffer(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    int status;
    Object *buffer = (Object *)self;
    void *address = buffer->value;
    buffer->value = NULL;
    if (address) {
        WITHOUT_GIL(release(address));
    }
    Py_RETURN_NONE;
}

static PyMethodDef event_methods[] = {{"close", close_event, METH_NOARGS, NULL}, {0}};
static PyMethodDef buffer_methods[] = {{"close", (PyCFunction)(void *)close_buffer, METH_FASTCALL, NULL}, {0}};
static PyTypeObject event_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lower_bound.Event",
                                  .tp_basicsize = sizeof(Object),
                                  .tp_flags = Py_TPFLAGS_DEFAULT,
                                  .tp_methods = event_methods};
static PyTypeObject buffer_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lower_bound.Buffer",
                                   .tp_basicsize = sizeof(Object),
                                   .tp_flags = Py_TPFLAGS_DEFAULT,
                                   .tp_methods = buffer_methods};

static PyObject *new_object(PyTypeObject *type, void *value)
{
    Object *object = PyObject_New(Object, type);
    if (object)
        object->value = value;
    return (PyObject *)object;
}

static PyObject *create_event(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    int status;
    void *handle;
    WITHOUT_GIL(((fn_event)given[EVENT_CREATE])(&handle, 2));
    return new_object(&event_type, handle);
}

static PyObject *allocate(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    unsigned long long address;
    if (count != 1 || !names || PyTuple_GET_SIZE(names) != 1 || PyTuple_GET_ITEM(names, 0) != stream_name)
        return PyErr_Format(PyExc_TypeError, "allocate(size, stream=...)");
    size_t bytes = PyLong_AsSize_t(arguments[0]);
    if (bytes == (size_t)-1 && PyErr_Occurred())
        return NULL;
    WITHOUT_GIL(((fn_allocate)given[ALLOCATE])(&address, bytes, given[POOL], given[STREAM]));
    return new_object(&buffer_type, (void *)address);
}

static PyTypeObject stream_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lower_bound.Stream",
                                   .tp_basicsize = sizeof(Object),
                                   .tp_flags = Py_TPFLAGS_DEFAULT};

static PyObject *stream_create(PyObject *module, PyObject *ignored)
{
    int status;
    void *handle;
    WITHOUT_GIL(((fn_stream)given[STREAM_CREATE])(&handle));
    return pair(new_object(&stream_type, handle));
}

static PyObject *stream_destroy(PyObject *module, PyObject *stream)
{
    int status;
    if (!Py_IS_TYPE(stream, &stream_type))
        return PyErr_Format(PyExc_TypeError, "a stream");
    WITHOUT_GIL(((fn_destroy)given[STREAM_DESTROY])(((Object *)stream)->value));
    return Py_NewRef(done);
}

/* create_event and allocate are methods of an object, as they are in cuda.core. */
static PyMethodDef device_methods[] = {
    {"create_event", (PyCFunction)(void *)create_event, METH_FASTCALL, NULL},
    {"allocate", (PyCFunction)(void *)allocate, METH_FASTCALL | METH_KEYWORDS, NULL},
    {0},
};
static PyTypeObject device_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "lower_bound.Device",
                                   .tp_basicsize = sizeof(Object),
                                   .tp_flags = Py_TPFLAGS_DEFAULT,
                                   .tp_new = PyType_GenericNew,
                                   .tp_methods = device_methods};

static PyMethodDef functions[] = {
    {"setup", (PyCFunction)(void *)setup, METH_FASTCALL, NULL},
    {"malloc", device_malloc, METH_O, NULL},
    {"free", device_free, METH_O, NULL},
    {"malloc_host", host_malloc, METH_O, NULL},
    {"free_host", host_free, METH_O, NULL},
    {"stream_create", stream_create, METH_NOARGS, NULL},
    {"stream_destroy", stream_destroy, METH_O, NULL},
    {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "lower_bound", NULL, -1, functions};

PyMODINIT_FUNC PyInit_lower_bound(void)
{
    success = PyLong_FromLong(0);
    done = success ? PyTuple_Pack(1, success) : NULL;
    stream_name = PyUnicode_InternFromString("stream");
    if (!done || !stream_name || PyType_Ready(&event_type) < 0 || PyType_Ready(&buffer_type) < 0 ||
        PyType_Ready(&device_type) < 0 || PyType_Ready(&stream_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddObjectRef(module, "Device", (PyObject *)&device_type) < 0)
        Py_CLEAR(module);
    return module;
}
