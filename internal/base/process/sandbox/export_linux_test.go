//go:build amd64 || arm64

package sandbox

// WithoutNamespaces has the boxes of s use none.
func (s *Sandbox) WithoutNamespaces() *Sandbox {
	s.plain = true
	return s
}

// Temp returns the temporary directory of a box that was prepared.
func (b *Box) Temp() string { return b.hold.temp.path }

// OnceLooked has f called each time a box has looked at the workspace.
func (s *Sandbox) OnceLooked(f func()) { s.looked = f }
