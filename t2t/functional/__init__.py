"""Mathematics as functions of arrays: no parameters, no modules, no state."""
