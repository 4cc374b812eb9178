"""Recording data sets in the simulators: behaviour policies, the recorder, and the files it writes."""
