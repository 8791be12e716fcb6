package command

// Mode says what is in force, as far as it decides which commands are offered.
type Mode struct {
	Role         bool // a role, of the conversation or of its session
	Session      bool // a session with messages
	EmptySession bool // a session without messages
	Knowledge    bool // a knowledge base
	Agent        bool
}

// mode returns what is in force.
func (c *Console) mode() Mode {
	s := c.conv.State()
	return Mode{
		Role: s.Role != "", Session: s.Session != nil && !s.Session.Empty, EmptySession: s.Session != nil && s.Session.Empty,
		Knowledge: s.Knowledge != "", Agent: s.Agent != "",
	}
}

// The conditions under which commands are offered.
func always(Mode) bool       { return true }
func noAgent(m Mode) bool    { return !m.Agent }
func withRole(m Mode) bool   { return m.Role }
func inSession(m Mode) bool  { return m.Session || m.EmptySession }
func noSession(m Mode) bool  { return !inSession(m) }
func withBase(m Mode) bool   { return m.Knowledge }
func withAgent(m Mode) bool  { return m.Agent }
func bare(m Mode) bool       { return m == Mode{} }
func begun(m Mode) bool      { return m.Session }
func canRole(m Mode) bool    { return !m.Session && !m.Agent }
func roleFree(m Mode) bool   { return m.Role && !m.Session }
func roleAlone(m Mode) bool  { return m.Role && noSession(m) }
func baseOfUser(m Mode) bool { return m.Knowledge && !m.Agent }
