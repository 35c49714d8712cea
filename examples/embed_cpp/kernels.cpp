// The one file with the kernels in it.
#define HEAT_IMPLEMENTATION
#include "heat.h"
