package rest

import "net/http"

// StatusWriter is a writer that records the status of the answer.
type StatusWriter struct {
	http.ResponseWriter
	Status int // 0 before the header is written
}

// WriteHeader writes the header.
func (w *StatusWriter) WriteHeader(status int) {
	if w.Status == 0 && status >= http.StatusOK {
		w.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *StatusWriter) Write(p []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the writer, for [http.ResponseController].
func (w *StatusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
