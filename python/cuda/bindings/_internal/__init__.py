"""Names that other packages import although they are not public."""
