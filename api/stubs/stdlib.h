/* Our own minimal stand-in for <stdlib.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#include <stddef.h>
