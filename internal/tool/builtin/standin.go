package builtin

import "loki/internal/tool"

// standIn is a script of the user that runs instead of a tool of the program.
type standIn struct {
	tool.FromFile
	native tool.Tool
}

var _ tool.StandIn = (*standIn)(nil)

// StandIn returns script as a tool that runs instead of native, which has the same name.
// Its calls need the user's consent wherever those of native would, and where the script
// says of itself that it is destructive. What native would refuse is a question too, as
// the script may do it.
func StandIn(script tool.FromFile, native tool.Tool) tool.Tool { return &standIn{script, native} }

// questioner is a native tool that knows what the user has to be asked. The error says why
// the call would fail.
type questioner interface {
	question(call tool.Call) (string, error)
}

var (
	_ questioner = (*guarded)(nil)
	_ questioner = (*executeCommand)(nil)
)

// StandsInFor implements [tool.StandIn].
func (s *standIn) StandsInFor() tool.Hints {
	h := s.native.Hints()
	if s.Hints().Destructive {
		h.ReadOnly, h.Destructive = false, true
	}
	return h
}

// Consent implements [tool.Guard].
func (s *standIn) Consent(call tool.Call) string {
	question, err := "", error(nil)
	if native, ok := s.native.(questioner); ok {
		question, err = native.question(call)
	}
	if question == "" && (err != nil || s.Hints().Destructive) {
		return tool.PlainQuestion(call)
	}
	return question
}
