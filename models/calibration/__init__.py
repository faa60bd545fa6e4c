"""From published measurements to efficiencies: data, features, fit and the profile that planning reads."""
