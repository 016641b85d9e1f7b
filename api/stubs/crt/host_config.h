/* Our own minimal stand-in for <crt/host_config.h>, which has nothing that a C compiler for the host needs. */
