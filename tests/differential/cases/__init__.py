"""One file a module: ordinary arguments for the recorder, scripts for the real library."""
