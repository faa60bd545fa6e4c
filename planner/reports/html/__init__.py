"""A plan as one HTML file that needs nothing else: no network, no server, light or dark, on paper too."""
