"""What a run would cost on a slice of TPU chips, found out without one (`t2t plan`)."""
