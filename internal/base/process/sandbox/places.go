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

	"loki/internal/base/file/atomicfile"
)

// tempPrefix is what the name of the directory begins with in which the temporary directories of boxes are.
const tempPrefix = "loki-sandbox-"

// installed are places that run later and that package managers make anew, for which [Network] is there.
var installed = []string{"node_modules/.bin", ".venv", "venv", ".pnp.cjs", ".pnp.loader.mjs"}

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
		{"/run/systemd/resolve/resolv.conf", "the target of /etc/resolv.conf"}, // a service listens beside it
		{"/run/systemd/resolve/stub-resolv.conf", "the target of /etc/resolv.conf"},
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

// programPlaces returns where the programs and libraries of the system are, and the ones that users install below their home
// directory, absolute. Without a home directory it leaves these out.
func programPlaces(home string) []string {
	var all []string
	for _, p := range slices.Concat(systemPlaces[runtime.GOOS], toolchainPlaces) {
		if below, ok := strings.CutPrefix(p.path, "~/"); !ok {
			all = append(all, p.path)
		} else if home != "" {
			all = append(all, filepath.Join(home, below))
		}
	}
	return all
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
	{"~/.local/share/uv/credentials", "credentials of package indexes"},
	{"~/.nvm/versions/node/*/etc/npmrc", "credentials of npm"},
	{"~/.npm-global/etc/npmrc", "credentials of npm"},
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
	{"/etc/letsencrypt", "keys of the system"},
	{"/etc/rancher", "credentials of Kubernetes"},
	{"/etc/kubernetes", "credentials of Kubernetes"},
	{"/etc/ssh/ssh_host_*_key", "keys of the system"},
}

// blankedPlaces are settings that programs need, without the lines in which credentials are; where they cannot be replaced they are
// closed if they have such lines.
var blankedPlaces = []place{
	{"~/.gitconfig", "credentials in settings of git"},
	{"~/.config/git/config", "credentials in settings of git"},
	{"~/.cargo/config.toml", "credentials of Cargo"},
	{"~/.cargo/config", "credentials of Cargo"},
	{"~/.config/go/env", "credentials in settings of Go"},
	{"~/miniconda3/.condarc", "credentials of conda"},
	{"~/anaconda3/.condarc", "credentials of conda"},
	{"~/miniforge3/.condarc", "credentials of conda"},
}

// laterPlaces can be read at every level, and are written at [Full] only: programs that are not confined execute what is
// in them, at a later time.
var laterPlaces = append([]place{
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
	{"tools/bazel", "Bazel runs it"},
}, slices.Concat(
	places("git runs what it names", "lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml lefthook-local.yaml lefthook-local.toml lefthook-local.json"),
	places("mise runs what it names", "mise.local.toml mise.local/config.toml"),
	places("continuous integration runs it", `azure-pipelines.yaml buildspec.yml buildspec.yaml cloudbuild.yaml cloudbuild.yml cloudbuild.json amplify.yml
		codemagic.yaml wercker.yml shippable.yml codeship-steps.yml codeship-services.yml`),
	places("an assistant runs what it names", "opencode.jsonc crush.json"),
	places("assistants follow it", "AGENT.md AGENTS.override.md AGENTS.local.md CLAUDE.local.md GEMINI.local.md QWEN.local.md CRUSH.md CRUSH.local.md WARP.md LOKI.local.md"),
	places("programs run what it names", ".bazelrc .mvn .Rprofile .irbrc .pryrc .iex.exs .ghci .ocamlinit .pdbrc .helix .github/hooks .pnpmfile.mjs .gitpod.yml .tekton .semaphore .build.yml"),
)...)

// places returns places with one reason.
func places(reason, names string) (list []place) {
	for name := range strings.FieldsSeq(names) {
		list = append(list, place{name, reason})
	}
	return list
}

// startPlaces are names in the home directory of files that programs run when the user logs in or starts them, or in which
// they find what to run. With those of laterPlaces, closedPlaces and toolchainPlaces they are all that runs later there.
var startPlaces = strings.Fields(`.profile .bash_profile .bash_login .bash_logout .bashrc .bash_aliases .bash_completion .inputrc
	.zshenv .zprofile .zshrc .zlogin .zlogout .oh-my-zsh .zinit .kshrc .mkshrc .shrc .cshrc .tcshrc .login .logout .hushlogin
	.config .local .cache .bin .pam_environment .environment .xinitrc .xprofile .xserverrc .xsession .xsessionrc .Xresources .Xdefaults
	.emacs .emacs.d .doom.d .spacemacs .gvimrc .nanorc .tmux.conf .tmux .screenrc .wezterm.lua .hammerspoon .systemd
	.gitconfig .gitignore .hgrc .curlrc .wgetrc .psqlrc .sqliterc .pythonrc .pythonrc.py .ipython .jupyter .Rprofile .Renviron .irbrc .pryrc .gemrc
	.pydistutils.cfg .condarc .gradle .m2 .sbt .ivy2 .bundle .composer .mailcap .forward .procmailrc .muttrc .rhosts .shosts .k5login .ansible.cfg .vagrant.d`)

// startNames returns the names that begin with a dot of what runs later in the home directory, beside laterPlaces.
var startNames = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	for _, name := range startPlaces {
		names[name] = true
	}
	for _, p := range slices.Concat(closedPlaces, toolchainPlaces) {
		if below, ok := strings.CutPrefix(p.path, "~/"); ok {
			name, _, _ := strings.Cut(below, "/")
			names[name] = true
		}
	}
	return names
})

// ownReason is why the files of this program are closed.
const ownReason = "files of this program"

// fileID identifies a file: while it exists, no other file has the same. Born is when it was made, in nanoseconds, 0 where the
// system does not know it; an inode that is used again has another one.
type fileID struct {
	Dev, Ino uint64
	Born     int64
}

// limits are what a box holds its child to. The paths are absolute, without symbolic links where they exist.
type limits struct {
	level     Level
	workspace string
	userHome  string            // empty if it is not known
	scripts   []string          // directories with scripts that run later
	home      string            // the home directory if it is in the workspace; else empty
	read      []string          // with all that is in them
	write     []string          // likewise; they can be read, too
	closed    map[string]string // neither, with the reason
	protected map[string]string // not written, with the reason
	held      map[string]bool   // directories that keep their names if they are in a place that is written
	ids       map[string]fileID // which files places of these three are that have to be the same when they are covered
	needs     Needs             // whatever is closed
	cache     string            // what programs keep from one call to the next; empty at level read
	built     string            // what the Go command keeps at level read; empty at others
	links     map[string]string // symbolic links that lead to places, with their targets
	blanked   map[string]string // settings with credentials, and what is left of them without
	coarse    bool              // there are no namespaces, so that level write has less of the workspace
}

// writes reports whether a path is below a place that is written, and not such a place itself.
func (l *limits) writes(path string) bool {
	return slices.ContainsFunc(slices.Concat(l.write, l.needs.Write), func(w string) bool { return w != path && contains(w, path) })
}

// fixed are the limits that do not depend on the box or the moment. They are found out once.
type fixed struct {
	once   sync.Once
	read   []string
	closed map[string]string
	links  map[string]string
	home   string // the home directory if it is in the workspace; else empty
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

// linked reports whether a link leads to a path that is in one of the directories, in which a child could have put it. If not, it
// records the links that do.
func (s *Sandbox) linked(links map[string]string, path string, dirs ...string) bool {
	found := make(map[string]string)
	follow(found, s.absolute(path))
	for link := range found {
		if slices.ContainsFunc(dirs, func(dir string) bool { return dir != link && contains(dir, link) }) {
			return true
		}
	}
	maps.Copy(links, found)
	return false
}

// declaredPlaces returns where places lead that settings name, and records the links that lead there. It leaves out those to which a link
// leads that is in the workspace or in a place that is written.
func (s *Sandbox) declaredPlaces(links map[string]string, paths, written []string) (places []string) {
	dirs := []string{s.workspace()}
	for _, p := range written {
		dirs = append(dirs, s.resolve(p))
	}
	for _, p := range paths {
		if !s.linked(links, p, dirs...) {
			places = append(places, s.resolve(p))
		}
	}
	return places
}

// repository returns git's directory of the repository of which the workspace is a linked working tree, empty if it is none. That
// directory names the workspace, so what comes with a workspace cannot claim the repository of another one.
//
// Source: gitrepository-layout(5).
func (s *Sandbox) repository() string {
	path := func(dir, name, prefix string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		line, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "\n"), prefix)
		if err != nil || !ok || line == "" {
			return ""
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		return resolve(line)
	}
	workspace := s.workspace()
	own := path(workspace, ".git", "gitdir: ")
	common := filepath.Dir(filepath.Dir(own))
	if own == "" || filepath.Base(filepath.Dir(own)) != "worktrees" || path(own, "gitdir", "") != filepath.Join(workspace, ".git") || path(own, "commondir", "") != common {
		return ""
	}
	return common
}

func (s *Sandbox) findFixed() *fixed {
	f := &s.fixed
	f.once.Do(func() {
		f.links = make(map[string]string)
		follow(f.links, s.o.Workspace)
		for _, p := range slices.Concat(systemPlaces[runtime.GOOS], toolchainPlaces) {
			var dirs []string
			if below, ok := strings.CutPrefix(p.path, "~/"); ok && below[0] != '.' { // else it is written by no child
				dirs = []string{s.workspace()}
			}
			if !s.linked(f.links, p.path, dirs...) {
				f.read = append(f.read, s.resolve(p.path))
			}
		}
		f.read = outermost(append(f.read, s.pathPlaces()...))
		f.closed = make(map[string]string)
		for _, p := range closedPlaces {
			if !strings.Contains(p.path, "*") {
				s.close(p.path, p.reason)
				continue
			}
			dir, pattern := literalDir(p.path)
			for _, path := range atomicfile.Glob(s.absolute(dir), pattern) {
				s.close(path, p.reason)
			}
		}
		for _, own := range slices.Concat(s.o.Own, s.o.Files) {
			s.close(own, ownReason)
		}
		if home := s.resolve("~/"); contains(s.workspace(), home) {
			f.home = home
			entries, _ := os.ReadDir(home)
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), ".") {
					s.close(filepath.Join(home, e.Name()), "settings and credentials of the user")
				}
			}
		}
	})
	return f
}

// outermost returns the paths without the ones that are inside another.
func outermost(paths []string) (outer []string) {
	slices.Sort(paths)
	for _, p := range paths {
		if p != "" && !slices.ContainsFunc(outer, func(o string) bool { return contains(o, p) }) {
			outer = append(outer, p)
		}
	}
	return outer
}

// close closes a place, under its name and where that leads.
func (s *Sandbox) close(path, reason string) {
	if p := s.absolute(path); p != "" {
		s.fixed.closed[p] = reason
		s.fixed.closed[s.resolve(path)] = reason
	}
}

// installations are what of an installation its programs need: beside DIR/bin, on the PATH, what has one of these names in DIR. DIR/conf is
// read if DIR/release says that it is one of Java. Others may hold credentials.
var installations = strings.Fields(`bin sbin lib lib32 lib64 libexec share include shims versions plugins python ruby perl pkg src api misc jmods legal release node_modules
	VERSION go.env pyvenv.cfg jre toolchains`)

// pathPlaces returns the directories of programs, with the installations that they are part of. Directories that hold more than
// programs, such as the home directory, do not count.
func (s *Sandbox) pathPlaces() []string {
	if s.o.Getenv == nil {
		return nil
	}
	var found []string
	for _, dir := range filepath.SplitList(s.o.Getenv("PATH")) {
		if !filepath.IsAbs(dir) || s.linked(s.fixed.links, dir, s.workspace()) {
			continue
		}
		dir = s.resolve(dir)
		root := filepath.Dir(dir)
		if base := filepath.Base(dir); base != "bin" && base != "shims" || contains(root, s.workspace()) || contains(root, s.resolve("~/.local")) {
			root = dir
		}
		if !contains(root, s.resolve("~/")) && !contains(root, s.workspace()) && !contains(root, "/tmp") {
			if root == dir || filepath.Base(dir) == "shims" { // a manager of versions finds these beside its shims
				found = append(found, root)
				continue
			}
			found = append(found, dir)
			names := installations
			if exists(filepath.Join(root, "release")) {
				names = append(slices.Clone(names), "conf")
			}
			for _, name := range names {
				if path := filepath.Join(root, name); exists(path) {
					found = append(found, s.resolve(path))
				}
			}
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

// writes reports whether the child changes files of the workspace.
func (b *Box) writes() bool { return b.declared.Level.Covers(Write) && !b.needs.Looks }

// keep adds what is kept from one call to the next in the same workspace. A command at level read has only the results of
// compilers from others at this level: what it puts there must not come to one that may do more.
func (b *Box) keep(l *limits) {
	if b.s.o.State == "" {
		return
	}
	hash := sha256.Sum256([]byte(l.workspace))
	kept := filepath.Join(resolve(b.s.o.State), "sandbox", hex.EncodeToString(hash[:8]))
	if b.writes() {
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

// literalDir splits a path with a star into the directory in front of it and the pattern below.
func literalDir(path string) (dir, pattern string) {
	star := strings.Index(path, "*")
	slash := strings.LastIndex(path[:star], "/")
	return path[:slash+1], path[slash+1:]
}
