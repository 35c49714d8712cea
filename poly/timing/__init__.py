"""Times of repeated calls: how they are taken and summarised, what they amount to, and what else the machine did."""
