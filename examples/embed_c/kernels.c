/* The only file that contains the kernels. All others include the header only for its declarations. */
#define ATTENTION_IMPLEMENTATION
#include "attention.h"
