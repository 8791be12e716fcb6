package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// place is a file or directory and why it is on its list. A path that begins with ~/ is below the user's home directory,
// other relative ones are below the workspace.
type place struct {
	path, reason string
}

// systemPlaces are readable at every level.
var systemPlaces = map[string][]place{
	"linux": {
		{"/usr", "programs and libraries"},
		{"/bin", "programs"},
		{"/sbin", "programs"},
		{"/lib", "libraries"},
		{"/lib32", "libraries"},
		{"/lib64", "libraries"},
		{"/libx32", "libraries"},
		{"/opt", "programs that do not come with the system"},
		{"/etc", "settings of programs"},
		{"/nix/store", "programs and libraries of Nix"},
		{"/run/current-system", "programs of NixOS"},
		{"/gnu/store", "programs and libraries of Guix"},
		{"/snap", "programs of snap"},
		{"/home/linuxbrew/.linuxbrew", "programs of Homebrew"},
		{"/var/lib/dpkg", "which packages are installed"},
		{"/var/lib/rpm", "which packages are installed"},
		{"/var/lib/apt/lists", "which packages there are"},
		{"/var/cache/fontconfig", "fonts"},
		{"/run/systemd/resolve", "the target of /etc/resolv.conf"},
		{"/dev/null", "device without content"},
		{"/dev/zero", "device without content"},
		{"/dev/full", "device without content"},
		{"/dev/random", "random numbers"},
		{"/dev/urandom", "random numbers"},
		{"/proc/cpuinfo", "what the machine is"},
		{"/proc/meminfo", "what the machine is"},
		{"/proc/stat", "what the machine is"},
		{"/proc/version", "what the machine is"},
		{"/proc/filesystems", "what the kernel knows"},
		{"/proc/loadavg", "how busy the machine is"},
		{"/proc/uptime", "how long the machine has been up"},
		{"/proc/sys/kernel", "settings of the kernel"},
		{"/proc/sys/vm", "settings of the kernel"},
		{"/proc/sys/fs", "settings of the kernel"},
		{"/proc/sys/net/core", "settings of the kernel"},
		{"/sys/devices/system", "processors and memory"},
		{"/sys/kernel/mm", "memory"},
		{"/sys/fs/cgroup", "limits of the container"},
	},
	"darwin": {
		{"/usr", "programs and libraries"},
		{"/bin", "programs"},
		{"/sbin", "programs"},
		{"/System", "programs and libraries"},
		{"/Library", "programs and libraries that do not come with the system"},
		{"/Applications", "programs, such as Xcode with its compilers"},
		{"/opt", "programs of Homebrew and MacPorts"},
		{"/etc", "settings of programs"},
		{"/nix/store", "programs and libraries of Nix"},
		{"/private/var/db/timezone", "time zones"},
		{"/private/var/db/dyld", "libraries"},
		{"/private/var/select", "which shell sh is"},
		{"/private/var/db/xcode_select_link", "which compilers are used"},
	},
}

// devicePlaces are writable at every level.
var devicePlaces = []place{
	{"/dev/null", "device that keeps nothing"},
	{"/dev/zero", "device that keeps nothing"},
	{"/dev/full", "device that keeps nothing"},
}

// toolchainPlaces are readable at every level: programs and libraries that users install below their home directory, and the
// settings that these need to start.
var toolchainPlaces = []place{
	{"~/.nvm", "Node.js of nvm"},
	{"~/.fnm", "Node.js of fnm"},
	{"~/.local/share/fnm", "Node.js of fnm"},
	{"~/.volta", "Node.js of Volta"},
	{"~/.npm-global", "programs of npm"},
	{"~/.local/share/pnpm", "programs of pnpm"},
	{"~/.bun", "Bun"},
	{"~/.deno", "Deno"},
	{"~/.pyenv", "Python of pyenv"},
	{"~/.local/share/uv", "Python of uv"},
	{"~/.local/pipx", "programs of pipx"},
	{"~/.local/share/pipx", "programs of pipx"},
	{"~/.local/bin", "programs of the user"},
	{"~/.local/lib", "libraries of the user"},
	{"~/miniconda3", "Python of conda"},
	{"~/anaconda3", "Python of conda"},
	{"~/miniforge3", "Python of conda"},
	{"~/.rbenv", "Ruby of rbenv"},
	{"~/.rvm", "Ruby of rvm"},
	{"~/.gem", "libraries of Ruby"},
	{"~/.asdf", "programs of asdf"},
	{"~/.local/share/mise", "programs of mise"},
	{"~/.sdkman", "Java of SDKMAN"},
	{"~/.jenv", "Java of jenv"},
	{"~/.m2/repository", "libraries of Maven"},
	{"~/.rustup", "Rust"},
	{"~/.cargo", "programs and libraries of Cargo"},
	{"~/go", "programs and libraries of Go"},
	{"~/.config/go/env", "settings of Go"},
	{"~/Library/Application Support/go/env", "settings of Go"},
	{"~/Library/Python", "libraries of Python"},
	{"~/.nix-profile", "programs of Nix"},
	{"~/.gitconfig", "settings of git, without which it stops"},
	{"~/.config/git/config", "settings of git, without which it stops"},
	{"~/.config/git/ignore", "settings of git"},
	{"~/.config/git/attributes", "settings of git"},
}

// closedPlaces are neither read nor written below [Full], even if a place around them is.
var closedPlaces = []place{
	{"~/.ssh", "keys of SSH"},
	{"~/.gnupg", "keys of GnuPG"},
	{"~/.aws", "credentials of AWS"},
	{"~/.azure", "credentials of Azure"},
	{"~/.config/gcloud", "credentials of Google Cloud"},
	{"~/.kube", "credentials of Kubernetes"},
	{"~/.docker", "credentials of Docker"},
	{"~/.config/gh", "credentials of GitHub"},
	{"~/.config/hub", "credentials of GitHub"},
	{"~/.config/glab-cli", "credentials of GitLab"},
	{"~/.netrc", "credentials of servers"},
	{"~/.git-credentials", "credentials of git"},
	{"~/.config/git/credentials", "credentials of git"},
	{"~/.npmrc", "credentials of npm"},
	{"~/.yarnrc", "credentials of Yarn"},
	{"~/.yarnrc.yml", "credentials of Yarn"},
	{"~/.pypirc", "credentials of PyPI"},
	{"~/.config/pip", "credentials of package indexes"},
	{"~/.pip", "credentials of package indexes"},
	{"~/.cargo/credentials", "credentials of Cargo"},
	{"~/.cargo/credentials.toml", "credentials of Cargo"},
	{"~/.gem/credentials", "credentials of RubyGems"},
	{"~/.m2/settings.xml", "credentials of Maven"},
	{"~/.gradle/gradle.properties", "credentials of Gradle"},
	{"~/.terraform.d", "credentials of Terraform"},
	{"~/.pgpass", "passwords of PostgreSQL"},
	{"~/.my.cnf", "passwords of MySQL"},
	{"~/.password-store", "passwords"},
	{"~/.local/share/keyrings", "passwords"},
	{"~/.bash_history", "what the user typed"},
	{"~/.zsh_history", "what the user typed"},
	{"~/.mozilla", "what a browser keeps"},
	{"~/.config/google-chrome", "what a browser keeps"},
	{"~/.config/chromium", "what a browser keeps"},
	{"~/.thunderbird", "mail"},
	{"~/Library/Keychains", "passwords"},
	{"~/Library/Application Support/Google", "what a browser keeps"},
	{"~/Library/Application Support/Firefox", "what a browser keeps"},
	{"~/Library/Safari", "what a browser keeps"},
	{"~/Library/Cookies", "what a browser keeps"},
	{"~/Library/Mail", "mail"},
	{"~/Library/Messages", "messages"},
	{"/Library/Keychains", "passwords of the system"},
	{"/etc/shadow", "passwords of the system"},
	{"/etc/shadow-", "passwords of the system"},
	{"/etc/gshadow", "passwords of the system"},
	{"/etc/gshadow-", "passwords of the system"},
	{"/etc/sudoers", "rights of users"},
	{"/etc/sudoers.d", "rights of users"},
	{"/etc/ssl/private", "keys of the system"},
	{"/etc/krb5.keytab", "keys of the system"},
	{"/etc/NetworkManager/system-connections", "passwords of networks"},
	{"/etc/wireguard", "keys of networks"},
}

// laterPlaces can be read at every level, and are written at [Full] only: programs that are not confined execute what is
// in them, at a later time.
var laterPlaces = []place{
	{".git/hooks", "git runs it later"},
	{".git/config", "git runs commands that it names"},
	{".git/config.worktree", "git runs commands that it names"},
	{".git/commondir", "git finds its settings by it"},
	{".git/info/attributes", "git chooses commands by it"},
	{".git/modules", "git runs hooks and commands in it"},
	{".git/worktrees", "git finds its settings by it"},
	{".gitmodules", "git fetches what it names"},
	{".hg/hgrc", "Mercurial runs commands that it names"},
	{".hg/hgrc-not-shared", "Mercurial runs commands that it names"},
	{".jj/repo/config.toml", "Jujutsu runs commands that it names"},
	{".jj/repo/config", "Jujutsu finds its settings by it"},
	{".husky", "git runs it later"},
	{".pre-commit-config.yaml", "git runs what it names"},
	{".lefthook.yml", "git runs what it names"},
	{"lefthook.yml", "git runs what it names"},
	{".envrc", "direnv runs it in the user's shell"},
	{".mise.toml", "mise runs what it names"},
	{"mise.toml", "mise runs what it names"},
	{".mise", "mise runs what it names"},
	{"mise/config.toml", "mise runs what it names"},
	{".tool-versions", "asdf chooses programs by it"},
	{".vscode", "the editor runs tasks in it"},
	{".idea", "the editor runs tasks in it"},
	{".vim", "the editor runs it"},
	{".nvim", "the editor runs it"},
	{".nvim.lua", "the editor runs it"},
	{".nvimrc", "the editor runs it"},
	{".exrc", "the editor runs it"},
	{".vimrc", "the editor runs it"},
	{".dir-locals.el", "the editor runs it"},
	{".devcontainer", "the editor runs it"},
	{".devcontainer.json", "the editor runs it"},
	{".zed", "the editor runs tasks in it"},
	{".vs", "the editor runs tasks in it"},
	{".fleet", "the editor runs tasks in it"},
	{".run", "the editor runs tasks in it"},
	{".gdbinit", "the debugger runs it"},
	{".lldbinit", "the debugger runs it"},
	{".github/workflows", "continuous integration runs it"},
	{".github/actions", "continuous integration runs it"},
	{".gitea/workflows", "continuous integration runs it"},
	{".gitea/actions", "continuous integration runs it"},
	{".forgejo/workflows", "continuous integration runs it"},
	{".forgejo/actions", "continuous integration runs it"},
	{".woodpecker", "continuous integration runs it"},
	{".woodpecker.yml", "continuous integration runs it"},
	{".woodpecker.yaml", "continuous integration runs it"},
	{".drone.yml", "continuous integration runs it"},
	{".buildkite", "continuous integration runs it"},
	{"bitbucket-pipelines.yml", "continuous integration runs it"},
	{".cirrus.yml", "continuous integration runs it"},
	{"appveyor.yml", "continuous integration runs it"},
	{".appveyor.yml", "continuous integration runs it"},
	{".gitlab-ci.yml", "continuous integration runs it"},
	{".circleci", "continuous integration runs it"},
	{".travis.yml", "continuous integration runs it"},
	{"azure-pipelines.yml", "continuous integration runs it"},
	{"Jenkinsfile", "continuous integration runs it"},
	{".venv", "Python tools run what is in it"},
	{"venv", "Python tools run what is in it"},
	{"node_modules/.bin", "tools run what is in it"},
	{".npmrc", "npm runs what it names"},
	{".yarnrc", "Yarn runs what it names"},
	{".yarnrc.yml", "Yarn runs what it names"},
	{".yarn/releases", "Yarn is in it"},
	{".yarn/plugins", "Yarn runs it"},
	{".pnpmfile.cjs", "pnpm runs it"},
	{".pnp.cjs", "Node.js runs it"},
	{".pnp.loader.mjs", "Node.js runs it"},
	{"bunfig.toml", "Bun runs what it names"},
	{".bundle/config", "Bundler finds programs by it"},
	{".corepack.env", "it names where package managers come from"},
	{"rust-toolchain", "rustup runs what it names"},
	{"rust-toolchain.toml", "rustup runs what it names"},
	{".cargo", "Cargo runs what its settings name"},
	{".mcp.json", "this program runs what it names"},
	{".loki", "files of this program"},
	{".claude", "an assistant runs what it names"},
	{".cursor", "an assistant runs what it names"},
	{".gemini", "an assistant runs what it names"},
	{".codex", "an assistant runs what it names"},
	{".opencode", "an assistant runs what it names"},
	{"opencode.json", "an assistant runs what it names"},
	{".kiro", "an assistant runs what it names"},
	{".roo", "an assistant runs what it names"},
	{".continue", "an assistant runs what it names"},
	{".windsurf", "an assistant runs what it names"},
	{".qwen", "an assistant runs what it names"},
	{"AGENTS.md", "assistants follow it"},
	{"CLAUDE.md", "assistants follow it"},
	{"GEMINI.md", "assistants follow it"},
	{"QWEN.md", "assistants follow it"},
	{".cursorrules", "assistants follow it"},
	{".windsurfrules", "assistants follow it"},
	{".clinerules", "assistants follow it"},
	{".github/copilot-instructions.md", "assistants follow it"},
	{"LOKI.md", "this program follows it"},
}

// limits are what a box holds its child to. The paths are absolute, without symbolic links where they exist.
type limits struct {
	level     Level
	workspace string
	userHome  string            // empty if it is not known
	home      bool              // the workspace is the home directory, or holds it
	read      []string          // with all that is in them
	write     []string          // likewise; they can be read, too
	closed    map[string]string // neither, with the reason
	protected map[string]string // not written, with the reason
	held      map[string]bool   // directories that keep their names if they are in a place that is written
	needs     Needs             // whatever is closed
	cache     string            // what programs keep from one call to the next; empty at level read
	built     string            // what the Go command keeps at level read; empty at others
	links     map[string]string // symbolic links that lead to places, with their targets
}

// writes reports whether a path is below a place that is written, and not such a place itself.
func (l *limits) writes(path string) bool {
	return slices.ContainsFunc(slices.Concat(l.write, l.needs.Write), func(w string) bool { return w != path && contains(w, path) })
}

// fixed are the limits that do not depend on the box or the moment. They are found out once.
type fixed struct {
	once      sync.Once
	workspace string
	read      []string
	closed    map[string]string
	links     map[string]string
	home      bool // the workspace is the home directory, or holds it
}

// follow records the symbolic links on the way to a path.
func follow(links map[string]string, path string) {
	for range 40 { // as the kernel does
		parent := ""
		link := ""
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			parent += "/" + part
			if target, err := os.Readlink(parent); err == nil {
				links[parent], link = target, target
				break
			}
		}
		if link == "" {
			return
		}
		rest := path[len(parent):]
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(parent), link)
		}
		path = filepath.Join(link, rest)
	}
}

func (s *Sandbox) findFixed() *fixed {
	f := &s.fixed
	f.once.Do(func() {
		f.workspace, f.links = s.resolve(s.o.Workspace), make(map[string]string)
		follow(f.links, s.o.Workspace)
		for _, p := range slices.Concat(systemPlaces[runtime.GOOS], toolchainPlaces) {
			f.read = append(f.read, s.resolve(p.path))
			follow(f.links, s.absolute(p.path))
		}
		f.read = append(f.read, s.pathPlaces()...)
		f.closed = make(map[string]string)
		for _, p := range closedPlaces {
			s.close(p.path, p.reason)
		}
		for _, own := range s.o.Own {
			s.close(own, "files of this program")
		}
		if f.home = s.o.Home != "" && f.workspace == s.resolve(s.o.Home) || f.workspace == "/"; f.home {
			entries, _ := os.ReadDir(f.workspace)
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), ".") {
					s.close(filepath.Join(f.workspace, e.Name()), "settings and credentials of the user")
				}
			}
		}
	})
	return f
}

// close closes a place, under its name and where that leads.
func (s *Sandbox) close(path, reason string) {
	if p := s.absolute(path); p != "" {
		s.fixed.closed[p] = reason
		s.fixed.closed[s.resolve(path)] = reason
	}
}

// pathPlaces returns the directories of programs, with the rest of the installation if it is one of its own: of
// DIR/bin all of DIR. Directories that hold more than programs, such as the home directory, do not count.
func (s *Sandbox) pathPlaces() []string {
	if s.o.Getenv == nil {
		return nil
	}
	var found []string
	for _, dir := range filepath.SplitList(s.o.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		dir = s.resolve(dir)
		root := filepath.Dir(dir)
		if base := filepath.Base(dir); base != "bin" && base != "shims" || contains(root, s.fixed.workspace) || contains(root, s.resolve("~/.local")) {
			root = dir
		}
		if !contains(root, s.resolve("~/")) && !contains(root, s.fixed.workspace) && !contains(root, "/tmp") {
			found = append(found, root)
		}
	}
	return found
}

// absolute returns a path of a list, empty if it is below a home directory that is not known.
func (s *Sandbox) absolute(path string) string {
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		if s.o.Home == "" {
			return ""
		}
		return filepath.Join(s.o.Home, path[1:])
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	default:
		return filepath.Join(s.o.Workspace, path)
	}
}

// resolve is absolute without symbolic links, as far as the path exists.
func (s *Sandbox) resolve(path string) string { return resolve(s.absolute(path)) }

func resolve(path string) string {
	if path == "" || path == "/" {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path))
}

// contains reports whether path is dir or below it. An empty one of them is nowhere.
func contains(dir, path string) bool {
	if dir == "" || path == "" {
		return false
	}
	return dir == path || dir == "/" || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// limits returns what a box holds its child to, as the files are now, and what the way there found.
func (b *Box) limits() (limits, survey, error) {
	s, f := b.s, b.s.findFixed()
	l := limits{
		level: b.declared.Level, workspace: f.workspace, userHome: s.o.Home, home: f.home, links: f.links,
		read: slices.Clone(f.read), needs: Needs{Read: resolveAll(b.needs.Read), Write: resolveAll(b.needs.Write)},
	}
	if f.workspace != "" {
		l.read = append(l.read, f.workspace)
	}
	for _, p := range slices.Concat(s.o.Read, b.declared.Read) {
		l.read = append(l.read, s.resolve(p))
	}
	writes := l.level.Covers(Write)
	found, err := look(&l, s.o.Denied, slices.Concat([]string{f.workspace}, l.read[len(f.read):], l.needs.Read, l.needs.Write), writes)
	if err != nil {
		return limits{}, survey{}, err
	}
	l.closed, l.protected, l.held = f.closed, found.protected, found.held
	if len(found.closed) > 0 {
		l.closed = maps.Clone(l.closed)
		maps.Copy(l.closed, found.closed)
	}
	for _, p := range devicePlaces {
		l.write = append(l.write, p.path)
	}
	if writes {
		l.write = append(l.write, f.workspace)
		for _, p := range slices.Concat(s.o.Write, b.declared.Write) {
			l.write = append(l.write, s.resolve(p))
		}
	}
	b.keep(&l)
	return l, found, nil
}

// keep adds what is kept from one call to the next in the same workspace. A command at level read has only the results of
// compilers from others at this level: what it puts there must not come to one that may do more.
func (b *Box) keep(l *limits) {
	if b.s.o.State == "" {
		return
	}
	hash := sha256.Sum256([]byte(l.workspace))
	kept := filepath.Join(resolve(b.s.o.State), "sandbox", hex.EncodeToString(hash[:8]))
	if l.level.Covers(Write) {
		if keepDirs(kept) == nil {
			l.cache = filepath.Join(kept, "cache")
			l.needs.Write = append(l.needs.Write, l.cache)
		}
		return
	}
	if built := filepath.Join(kept, "read", "go-build"); os.MkdirAll(built, 0o700) == nil {
		l.built = built
		l.needs.Write = append(l.needs.Write, built)
	}
}

func resolveAll(paths []string) []string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = resolve(filepath.Clean(p))
	}
	return all
}

// Directories of a workspace that are kept from one call to the next.
const (
	tmpDir    = "tmp"    // is /tmp
	varTmpDir = "vartmp" // is /var/tmp
	shmDir    = "devshm" // is /dev/shm
)

// keptFor is how long temporary files are kept after their last change.
const keptFor = 7 * 24 * time.Hour

// keepDirs makes the directories of a workspace that are kept, and removes old temporary files.
func keepDirs(kept string) error {
	for _, name := range []string{"cache", tmpDir, varTmpDir, shmDir} {
		if err := os.MkdirAll(filepath.Join(kept, name), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{tmpDir, varTmpDir, shmDir} {
		dir := filepath.Join(kept, name)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keptFor {
				_ = os.RemoveAll(filepath.Join(dir, e.Name())) // the next call tries again
			}
		}
	}
	return nil
}
