"""The computations that poly and peers are measured on, in the terms of their fields."""
