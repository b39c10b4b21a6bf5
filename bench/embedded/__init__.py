"""llama.cpp's server out of the package `xllamacpp`: an engine that is installed with pip and needs no GPU."""
