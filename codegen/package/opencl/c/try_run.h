/* Shapes and memory; 0 where there is none. */
static int try_describe(try_case *c, int trial)
{
    int64_t extents[TRY_ARRAYS * TRY_RANK], *extent = extents;
    int n, m;
    memset(c, 0, sizeof *c);
    c->flops = try_nest_trial[trial][0];
    c->terms = try_nest_trial[trial][1];
    c->size = try_nest_trial[trial] + 2;
    try_nest_shape(c->size, extents);
    for (n = 0; n < TRY_ARRAYS; n++) {
        try_array *const a = &c->array[n];
        a->is = &try_nest_array[n];
        memcpy(a->extent, extent, sizeof *extent * (size_t)a->is->rank);
        extent += a->is->rank;
        try_lay_out(a, n, 0);
        a->memory = try_memory(3 * a->block);
        if (!a->memory) return 0;
        for (m = 0; m < 3; m++) a->copy[m] = a->memory + (size_t)(a->block * m);
    }
    return 1;
}

/* Buffers with an array's first values between guards. */
static int try_buffer(try_device *o, try_case *c, int n)
{
    try_array *const a = &c->array[n];
    const cl_buffer_region region = {(size_t)a->shift, (size_t)(a->span ? a->span : a->width)};
    cl_int status;
    c->whole[n] = clCreateBuffer(o->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, (size_t)a->block,
                                 a->copy[TRY_START], &status);
    if (!try_well(status, "making a buffer")) return 0;
    c->part[n] = clCreateSubBuffer(c->whole[n], CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    return try_well(status, "making a buffer between guards");
}

static void try_free(try_case *c)
{
    int n;
    for (n = 0; n < TRY_ARRAYS; n++) {
        if (c->part[n]) clReleaseMemObject(c->part[n]);
        if (c->whole[n]) clReleaseMemObject(c->whole[n]);
        free(c->array[n].memory);
    }
}

/* Lets the plain loops make what is wanted. -1: no memory; else whether all of it is finite. */
static int try_want(try_case *c)
{
    const int64_t bytes = try_nest_workspace(c->size);
    unsigned char *const memory = try_memory(bytes + 64);
    int64_t strange = 0;
    int n;
    if (!memory) return -1;
    for (n = 0; n < TRY_ARRAYS; n++) {
        try_array *const a = &c->array[n];
        memcpy(a->copy[TRY_WANT], a->copy[TRY_START], (size_t)a->block);
        a->data = a->copy[TRY_WANT] + (size_t)a->shift;
    }
    try_nest_plain(c, memory + (64u - (uintptr_t)memory % 64u) % 64u);
    free(memory);
    for (n = 0; n < TRY_ARRAYS; n++)
        if (c->array[n].is->use != TRY_READ) (void)try_mean(&c->array[n], &strange);
    return !strange;
}

static void try_draw(try_case *c, int n) { try_fill(&c->array[n], n, TRY_DELICATE, TRY_DRIFTS); }

/* First values, and what is wanted: outputs start as no numbers. So does an array that may be set before it is read;
   where these come through, it gets values. 0 where there is no memory. */
static int try_prepare(try_case *c)
{
    int n, again = 0, found;
    for (n = 0; n < TRY_ARRAYS; n++) {
        const int use = c->array[n].is->use;
        if (use == TRY_READ || use == TRY_UPDATED) try_draw(c, n);
        again |= use == TRY_MAYBE_SET;
    }
    found = try_want(c);
    if (found != 0 || !again) return found >= 0;
    for (n = 0; n < TRY_ARRAYS; n++)
        if (c->array[n].is->use == TRY_MAYBE_SET) try_draw(c, n);
    return try_want(c) >= 0;
}

/* Between the start of the first launch and the end of the last one, by the device's clock. */
static double try_seconds(cl_event began, cl_event done)
{
    cl_ulong from = 0, to = 0;
    if (!try_well(clGetEventProfilingInfo(began, CL_PROFILING_COMMAND_START, sizeof from, &from, NULL), "profiling"))
        return -1.0;
    if (!try_well(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof to, &to, NULL), "profiling"))
        return -1.0;
    return 1e-9 * (double)(to - from);
}

/* One call on arrays with their first values: its seconds, negative where it failed. */
static double try_once(try_device *o, pfx_program *program, try_case *c)
{
    cl_event began, done;
    double seconds = -1.0;
    cl_int status;
    int n;
    for (n = 0; n < TRY_ARRAYS; n++) {
        try_array *const a = &c->array[n];
        if (a->is->use == TRY_READ) continue;
        status = clEnqueueWriteBuffer(o->queue, c->whole[n], CL_TRUE, 0, (size_t)a->block, a->copy[TRY_START], 0, NULL,
                                      NULL);
        if (!try_well(status, "writing an array")) return -1.0;
    }
    status = try_nest_enqueue(program, o->queue, c, &began, &done);
    if (!try_well(status, "queueing the nest")) return -1.0;
    if (try_well(clFinish(o->queue), "running the nest")) seconds = try_seconds(began, done);
    clReleaseEvent(began);
    clReleaseEvent(done);
    return seconds;
}

/* One call, and its worst error; 0 where it failed. */
static int try_check(try_device *o, pfx_program *program, try_case *c, try_error *worst)
{
    int n;
    for (n = 0; n < TRY_ARRAYS; n++)
        if (!try_buffer(o, c, n)) return 0;
    if (try_once(o, program, c) < 0.0) return 0;
    for (n = 0; n < TRY_ARRAYS; n++) {
        try_array *const a = &c->array[n];
        const cl_int status =
            clEnqueueReadBuffer(o->queue, c->whole[n], CL_TRUE, 0, (size_t)a->block, a->copy[TRY_HAVE], 0, NULL, NULL);
        if (!try_well(status, "reading an array")) return 0;
        try_compare(a, c->terms, worst);
    }
    return 1;
}
