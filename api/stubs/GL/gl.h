/* Our own minimal stand-in for <GL/gl.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_GL_H
#define CUPYRITE_STUB_GL_H
typedef unsigned int GLenum;
typedef unsigned int GLuint;
#endif
