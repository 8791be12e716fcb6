package team

import "time"

// Defaults of [Limits].
const (
	DefaultMaxConcurrent          = 4
	DefaultMaxDepth               = 3
	DefaultSummarizationThreshold = 4000
	DefaultEscalationTimeout      = 5 * time.Minute
	DefaultTimeout                = time.Hour
	DefaultIdleTimeout            = 10 * time.Minute
)

// Limits bound what an agent may do with children, and how long it may work as a child itself.
type Limits struct {
	CanSpawn  bool     // it may start children at all
	Spawnable []string // names of the agents it may start; nil for any, empty for none

	MaxConcurrent int // children of its own that run at once
	MaxDepth      int // deepest depth at which it may start a child; the root has depth 0

	SummarizationModel     string // id, empty for the agent's own model
	SummarizationThreshold int    // bytes of a child's output from which it is summarized

	EscalationTimeout time.Duration // how long a question of this agent, as a child, waits for an answer
	Timeout           time.Duration // how long this agent may work as a child, 0 for any time
	IdleTimeout       time.Duration // how long it may do nothing as a child, 0 for any time
}

// DefaultLimits returns the limits of an agent that says nothing: it has no children.
func DefaultLimits() Limits {
	return Limits{
		MaxConcurrent: DefaultMaxConcurrent, MaxDepth: DefaultMaxDepth, SummarizationThreshold: DefaultSummarizationThreshold,
		EscalationTimeout: DefaultEscalationTimeout, Timeout: DefaultTimeout, IdleTimeout: DefaultIdleTimeout,
	}
}
