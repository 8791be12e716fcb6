package app

import (
	"loki/internal/base/file/update"
	"loki/internal/base/process/environ"
)

// UpdateOptions returns what an update of the program takes from the configuration. If that cannot be
// used, a is nil and the environment of the process counts alone.
func UpdateOptions(a *App, environment []string) (update.Options, error) {
	o := update.Options{Version: Version}
	if a != nil {
		o.Feed, o.Keys = a.Config.ReleaseFeed, a.Config.ReleaseKey
	} else {
		o.Feed, o.Keys = environ.Get(environment, "LOKI_RELEASE_FEED"), environ.Get(environment, "LOKI_RELEASE_KEY")
	}
	var err error
	o.Executable, err = update.Executable()
	return o, err
}
