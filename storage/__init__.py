"""The durable store: SQLite, standard library alone. It knows neither the protocol nor any screen."""
