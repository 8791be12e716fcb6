package config

import (
	"slices"
	"strings"
	"time"

	"loki/internal/yamldoc"
)

// MCPPool says how connections to MCP servers are kept that nobody uses. The zero value
// keeps none.
type MCPPool struct {
	IdleTimeout     time.Duration // 0 closes a connection at once
	CleanupInterval time.Duration // 0 leaves it to the pool
	MaxIdle         int           // connections; 0 leaves it to the pool, and less is no limit

	HealthCheck    bool // look after idle connections
	HealthInterval time.Duration
	HealthTimeout  time.Duration
	OnFailure      string // Evict, EvictAndLog or LogOnly; empty leaves it to the pool
}

// readMCPPool reads mcp_pool.
func readMCPPool(m *yamldoc.Map, p *MCPPool) {
	m.Seconds("idle_timeout_seconds", &p.IdleTimeout)
	m.Seconds("cleanup_interval_seconds", &p.CleanupInterval)
	m.Uint("max_idle_servers", &p.MaxIdle)
	if n := m.Get("max_idle_servers"); n != nil && n.Kind() == yamldoc.Null {
		p.MaxIdle = -1
	}
	if health := m.Map("health_check"); health != nil {
		p.HealthCheck = true
		health.Seconds("interval_seconds", &p.HealthInterval)
		health.Seconds("timeout_seconds", &p.HealthTimeout)
		actions := []string{"Evict", "EvictAndLog", "LogOnly"}
		if health.Str("on_failure", &p.OnFailure) && !slices.Contains(actions, p.OnFailure) {
			health.Get("on_failure").Errorf("%q is none of %s", p.OnFailure, strings.Join(actions, ", "))
		}
		health.Done()
	}
	m.Done()
}
