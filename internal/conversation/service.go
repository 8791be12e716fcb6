package conversation

import (
	"context"

	"loki/internal/agent/team"
	"loki/internal/agent/todo"
	"loki/internal/ask"
	"loki/internal/chat"
	"loki/internal/engine"
	"loki/internal/event"
	"loki/internal/graph"
	"loki/internal/rag"
	"loki/internal/role"
	"loki/internal/run"
	"loki/internal/session"
	"loki/internal/tool"
)

// Service begins conversations. Its fields are what they share; they are not changed once
// there is a conversation. It may be used from several goroutines.
type Service struct {
	Engine   *engine.Engine
	Roles    func() role.Library
	Sessions func() (session.Store, error) // always the same store

	// Tools returns what a question is asked with. done releases what the tools hold; it is
	// called also after an error. A nil Tools has none.
	Tools func(ctx context.Context, w Wanted) (kit Kit, done func(), err error)

	Settings     chat.Settings          // of the configuration, below all others
	Todo         todo.Settings          // likewise; without Enabled models have no todo list
	NoStream     bool                   // replies come in one piece
	InputLimit   func(model string) int // most tokens that the model called by this id takes; 0 means unknown
	MessagesFile *session.MessagesFile  // keeps turns outside of sessions; nil keeps none
	Recents      session.Recents        // remembers the last conversation of each directory; without a path none
	SaveSession  *bool                  // that new sessions begin with
	Compression  Compression
	Durability   graph.Durability // of the records of questions; off and "" keep none
	Runs         *run.Service     // records them; nil if Durability says that there are none
	DryRun       bool             // models answer with what would be sent, and nothing is kept
	Unkept       bool             // nothing is kept: neither in sessions, which change in memory only, nor in files of messages
}

// Wanted says for whom which tools are wanted.
type Wanted struct {
	chat.Settings      // that are in force
	Usual         bool // the choice of tools is that of a role of the program, so names without a tool are no mistake
	Caller

	Agent     *Agent            // nil for none
	Variables map[string]string // of the agent

	Knowledge string // name of the knowledge base that the user named; "" for none
	// Recorded says that the question goes on from its record, which may have what was found for it.
	Recorded bool
}

// Kit is what a question is asked with.
type Kit struct {
	Tools   tool.Set
	Calling bool              // models are offered tools at all
	Files   map[string]string // digests of the files of the tools, for the record; see [run.Info]
	// Calls says how they are called: who judges the calls, and which limits they have. The
	// turn sets the tools and what depends on its run.
	Calls tool.Options
	// Team says how an agent starts children. The turn sets who the root is.
	Team team.Options
	// Knowledge is what the question is answered from, with Template: the knowledge base that the
	// user named, or that of the agent; nil for none.
	Knowledge rag.Searcher
	Template  rag.Template
}

// Caller is the user behind a conversation: where it turns to them.
type Caller struct {
	Events event.Scope // the zero Scope drops events
	Asker  ask.Asker   // asks whether tools may be used, and what tools ask; nil if the user cannot be asked
	Yes    bool        // whatever tools would ask is answered with yes
}

// Options configure [Service.Begin]. The zero value of a field is its default.
type Options struct {
	Settings chat.Settings // over those of the session, the role and the configuration
	NoStream bool          // replies come in one piece
	Caller

	// Member is what an agent is in its team if another one started it; nil for what the user
	// started.
	Member *team.Member
	// Escalated says that the questions of such an agent to the user, those for consent aside, go to
	// the model of another agent.
	Escalated bool

	// Unrecorded says that there are no records of its questions, such as when a list of
	// them is asked.
	Unrecorded bool

	// EmptySession has a session that is entered forget its messages, in a dry run only
	// for the time being.
	EmptySession bool
}

// Begin begins a conversation without role and session.
func (s *Service) Begin(o Options) *Conversation {
	o.NoStream = o.NoStream || s.NoStream
	return &Conversation{service: s, options: o, list: new(todo.List)}
}

// runs returns what questions are run by.
func (s *Service) runs() *run.Service {
	if s.Runs == nil {
		return &run.Service{Unrecorded: true}
	}
	return s.Runs
}
