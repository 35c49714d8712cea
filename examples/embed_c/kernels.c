/* The one file with the kernels in it. Everything else includes the header for its declarations alone. */
#define ATTENTION_IMPLEMENTATION
#include "attention.h"
