/* Our own minimal stand-in for <arpa/inet.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#include <sys/types.h>
