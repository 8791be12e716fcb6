package split

func (w *walk) sections() { w.split(0, len(w.text), w.separators) }
