"""Reports that a timer makes: a folder for each date, whole or not at all, and the timers that make them."""
