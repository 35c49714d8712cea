"""Schedules that poly makes itself: the default one of every nest, and the spaces that searches choose from."""
