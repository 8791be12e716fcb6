// Package page serves the page for browsers.
package page

import (
	"loki/internal/app"
	"loki/internal/server/rest"
)

// Register adds the endpoints. core is what they work with.
func Register(a *rest.API, core *app.App) {}
