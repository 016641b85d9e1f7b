/* Our own minimal stand-in for <sys/socket.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#include <sys/types.h>
struct sockaddr;
