"""`poly report`: one page about a nest, its schedule, where the time goes, and how the schedule was found."""
