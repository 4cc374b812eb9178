"""How far the judge can be trusted: what it says of policies whose true value is known."""
