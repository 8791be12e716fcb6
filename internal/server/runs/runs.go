// Package runs serves the runs of agents.
package runs

import (
	"loki/internal/app"
	"loki/internal/run/manager"
	"loki/internal/server/rest"
)

// Register adds the endpoints. core is what they work with, m has the runs.
func Register(a *rest.API, core *app.App, m *manager.Manager) {}
