/* One call on its way: after the first failure, all that follows does nothing. */
typedef struct pfx_call {
    pfx_program *program;
    cl_command_queue queue;
    cl_uint waits; /* what the first command waits for */
    const cl_event *wait_list;
    cl_event began, done; /* the first command's, and the latest one's */
    cl_int status;
} pfx_call;

static void pfx_fail(pfx_call *c, cl_int status, const char *doing, const char *what)
{
    c->status = pfx_failed(c->program->messages, status, doing, what);
}

/* Commands run one after the other: that is all that orders the launches. */
static void pfx_check_queue(pfx_call *c)
{
    cl_command_queue_properties properties = 0;
    c->status = clGetCommandQueueInfo(c->queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (c->status != CL_SUCCESS) pfx_fail(c, c->status, "looking at", "the queue");
    else if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        pfx_fail(c, CL_INVALID_QUEUE_PROPERTIES, "finding no order in", "the queue");
}

/* The bytes of an array are no more than its buffer has. */
static void pfx_check_array(pfx_call *c, const char *name, cl_mem buffer, int64_t bytes, int rank,
                            const int64_t *extent)
{
    size_t found = 0;
    int d, empty = 0;
    for (d = 0; d < rank && c->status == CL_SUCCESS; d++) {
        const int64_t most = extent[d] > 0 ? INT64_MAX / extent[d] : INT64_MAX;
        empty |= extent[d] == 0;
        if (extent[d] < 0) pfx_fail(c, CL_INVALID_VALUE, "finding a negative extent in", name);
        else if (bytes > most) pfx_fail(c, CL_INVALID_VALUE, "counting the bytes of", name);
        else if (!empty) bytes *= extent[d];
    }
    if (c->status != CL_SUCCESS || empty) return;
    c->status = clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof found, &found, NULL);
    if (c->status != CL_SUCCESS) pfx_fail(c, c->status, "looking at the buffer", name);
    else if (found < (uint64_t)bytes) pfx_fail(c, CL_INVALID_BUFFER_SIZE, "finding too few bytes in", name);
}

static void pfx_argument(pfx_call *c, int kernel, cl_uint at, size_t bytes, const void *value)
{
    if (c->status != CL_SUCCESS) return;
    c->status = clSetKernelArg(c->program->kernel[kernel], at, bytes, value);
    if (c->status != CL_SUCCESS) pfx_fail(c, c->status, "setting an argument of", pfx_kernels[kernel]);
}

/* A command is in the queue; what follows it waits for it alone. */
static void pfx_queued(pfx_call *c, cl_event event)
{
    c->waits = 0;
    c->wait_list = NULL;
    if (c->done) {
        clReleaseEvent(c->done);
    } else {
        c->began = event;
        clRetainEvent(event);
    }
    c->done = event;
}

/* So many work-groups along each dimension; nothing is to be done where one of them is 0. */
static void pfx_launch(pfx_call *c, int kernel, cl_uint dimensions, const int64_t *groups, const size_t *items)
{
    size_t all[3];
    cl_event event;
    cl_uint d;
    for (d = 0; d < dimensions; d++) {
        if (groups[d] <= 0) return;
        all[d] = (size_t)groups[d] * items[d];
    }
    if (c->status != CL_SUCCESS) return;
    c->status = clEnqueueNDRangeKernel(c->queue, c->program->kernel[kernel], dimensions, NULL, all, items, c->waits,
                                       c->wait_list, &event);
    if (c->status == CL_SUCCESS) pfx_queued(c, event);
    else pfx_fail(c, c->status, "launching", pfx_kernels[kernel]);
}

/* Gives a caller an event that is asked for. */
static void pfx_hand_over(pfx_call *c, cl_event event, cl_event *to)
{
    const int wanted = to && c->status == CL_SUCCESS;
    if (to) *to = wanted ? event : NULL;
    if (event && !wanted) clReleaseEvent(event);
}

/* The end of a call. One that launched nothing has a marker in place of a launch. */
static cl_int pfx_finish(pfx_call *c, cl_event *began, cl_event *done)
{
    if (c->status == CL_SUCCESS && !c->done) {
        cl_event event;
        c->status = clEnqueueMarkerWithWaitList(c->queue, c->waits, c->wait_list, &event);
        if (c->status == CL_SUCCESS) pfx_queued(c, event);
        else pfx_fail(c, c->status, "queueing", "a marker");
    }
    pfx_hand_over(c, c->began, began);
    pfx_hand_over(c, c->done, done);
    return c->status;
}
