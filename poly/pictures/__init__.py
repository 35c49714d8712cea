"""Pictures: iteration orders and dependences as scenes of shapes, rooflines and tunings as charts, all in one style."""
