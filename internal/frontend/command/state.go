package command

// Mode says what is in force, as far as it decides which commands are offered.
type Mode struct {
	Role         bool // a role, of the conversation or of its session
	Session      bool // a session with messages
	EmptySession bool // a session without messages
	Unnamed      bool // what was said has no name; then neither of the two
	Knowledge    bool // a knowledge base
	Agent        bool
}

// mode returns what is in force.
func (c *Console) mode() Mode {
	s := c.conv.State()
	m := Mode{Role: s.Role != "", Knowledge: s.Knowledge != "", Agent: s.Agent != ""}
	if s.Session != nil {
		m.Unnamed, m.Session, m.EmptySession = s.Session.Unnamed, !s.Session.Unnamed && !s.Session.Empty, !s.Session.Unnamed && s.Session.Empty
	}
	return m
}

// The conditions under which commands are offered.
func always(Mode) bool       { return true }
func noAgent(m Mode) bool    { return !m.Agent }
func withRole(m Mode) bool   { return m.Role }
func inSession(m Mode) bool  { return m.Session || m.EmptySession || m.Unnamed }
func noSession(m Mode) bool  { return !m.Session && !m.EmptySession }
func withBase(m Mode) bool   { return m.Knowledge }
func withAgent(m Mode) bool  { return m.Agent }
func bare(m Mode) bool       { m.Unnamed = false; return m == Mode{} }
func begun(m Mode) bool      { return m.Session || m.Unnamed }
func canRole(m Mode) bool    { return !m.Session && !m.Agent }
func roleFree(m Mode) bool   { return m.Role && !m.Session }
func roleAlone(m Mode) bool  { return m.Role && noSession(m) }
func baseOfUser(m Mode) bool { return m.Knowledge && !m.Agent }
