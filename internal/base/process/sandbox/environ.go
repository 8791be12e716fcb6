package sandbox

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/process/environ"
)

// LevelVariable is the variable of the environment by which this program, started in a box, knows its level.
const LevelVariable = "LOKI_SANDBOX_LEVEL"

// environ returns the environment of the child: directories for what programs keep, the proxy if there is one at port, and
// nothing that leads to services that it cannot reach. temp is its directory for temporary files.
func (b *Box) environ(env []string, temp string, port int) []string {
	cache := cmp.Or(b.held.cache, temp+"/cache")
	set := map[string]string{
		"TMPDIR": temp, "TMP": temp, "TEMP": temp,
		"XDG_CACHE_HOME": cache, "GOCACHE": cmp.Or(b.held.built, cache+"/go-build"), "npm_config_cache": cache + "/npm", "PIP_CACHE_DIR": cache + "/pip",
		"PYTHONPYCACHEPREFIX": temp + "/cache/python",
		"GIT_OPTIONAL_LOCKS":  "0",
		LevelVariable:         string(b.declared.Level),
	}
	env = environ.Merge(env, set, unreachable...)
	if port != 0 {
		env = proxyEnv(env, b.hosts(), port)
	}
	return env
}

// unreachable are variables that lead to services of the user's session.
var unreachable = []string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "DOCKER_HOST"}

// hosts returns the patterns of hosts that the child reaches at level [Network].
func (b *Box) hosts() []string { return slices.Concat(b.s.o.Hosts, b.declared.Hosts) }

// proxyEnv returns an environment that leads to the proxy, also for this machine if that is one of the hosts.
func proxyEnv(env, hosts []string, port int) []string {
	address := "http://127.0.0.1:" + strconv.Itoa(port)
	set := map[string]string{"NODE_USE_ENV_PROXY": "1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		set[name] = address
	}
	own := []string{"localhost", "127.0.0.1", "::1"}
	direct := strings.Join(own, ",")
	for _, h := range hosts {
		if name, _, _ := strings.Cut(h, ":"); slices.Contains(own, name) {
			direct = ""
		}
	}
	set["NO_PROXY"], set["no_proxy"] = direct, direct
	return environ.Merge(env, set)
}
