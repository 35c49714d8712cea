/* The nest at one trial's sizes: what the plain loops make of its arrays, and what the device does. */
typedef struct try_case {
    const int64_t *size;
    int64_t flops, terms; /* 0: not to be measured; so many terms has a sum */
    try_array array[TRY_ARRAYS];
    cl_mem whole[TRY_ARRAYS], part[TRY_ARRAYS]; /* an array with its guards, and it alone */
} try_case;
