package command

// Completion is what can stand in place of the end of a text.
type Completion struct {
	From       int // offset in bytes from which a candidate replaces the text
	Candidates []Candidate
}

// Candidate is one of them.
type Candidate struct {
	Value, Description string
	Space              bool // a blank follows it
}

// Complete returns what the text before the cursor can be completed to.
func (c *Console) Complete(string) Completion { return Completion{} }
