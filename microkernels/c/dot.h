/* A multiply-add of vectors of words: of each lane, the products of the elements in its words are added to its sum. */
INLINE vec_T dot_T(vec_T x, vec_T row, vec_T sum) { return DOT; }
