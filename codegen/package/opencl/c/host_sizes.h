/* A size that a caller gives. */
static void pfx_check_size(pfx_call *c, const char *name, int64_t size)
{
    const int right = size >= 0 && size <= PFX_SIZE_LIMIT;
    if (c->status == CL_SUCCESS && !right) pfx_fail(c, CL_INVALID_VALUE, "looking at the size", name);
}
