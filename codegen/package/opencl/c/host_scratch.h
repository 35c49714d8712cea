/* Memory that kernels hand on to each other. It stays for later calls, until one needs more. */
static cl_mem pfx_scratch(pfx_call *c, int at, int64_t bytes)
{
    pfx_program *const program = c->program;
    cl_mem *const memory = &program->scratch[at];
    if (c->status != CL_SUCCESS || (*memory && program->scratch_bytes[at] >= bytes)) return *memory;
    if (*memory) clReleaseMemObject(*memory);
    *memory = NULL;
    c->status = CL_INVALID_BUFFER_SIZE;
    if ((int64_t)(size_t)bytes == bytes)
        *memory = clCreateBuffer(program->context, CL_MEM_READ_WRITE, bytes > 0 ? (size_t)bytes : 1, NULL, &c->status);
    program->scratch_bytes[at] = bytes;
    if (c->status != CL_SUCCESS) pfx_fail(c, c->status, "making", "scratch memory");
    return *memory;
}
