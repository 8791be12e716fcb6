// Package config reads what the user set up: the environment and the env file, the
// places of files and directories, and config.yaml.
//
// The order of precedence is: built-in default, config.yaml, environment, command
// line; the caller applies the last. [Env] is the environment,
// [Paths] the places, [Config] the settings. A [Client] is one configured
// connection to a maker of models.
//
// A front end starts with
//
//	env, warn := config.NewEnv(runtime.GOOS, os.Environ()).LoadEnvFile()
//	paths, err := config.NewPaths(env)
//	cfg, warnings, err := config.Load(paths, env)
//
// where warn and warnings are for the user's eyes and stop nothing. Nothing here
// creates a directory, opens a connection, or changes the process's environment.
package config
