package filestore

import (
	"context"
	"errors"
	"io"
	"os"

	"loki/internal/base/file/atomicfile"
	"loki/internal/conversation/session"
	"loki/internal/service/auth"
)

// log is the [session.Log] of one session.
type log struct {
	room *room
	id   session.ID
	err  error // why there is no room
}

func (l *log) Create(ctx context.Context, st session.State) error {
	if l.err != nil {
		return l.err
	}
	r := l.room
	lock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if st.Alias != "" {
		switch _, err := r.resolve(ctx, st.Alias); {
		case err == nil:
			return session.AliasInUse(st.Alias)
		case !errors.Is(err, session.ErrNotFound):
			return err
		}
	}
	return r.place(l.id, st, nil)
}

func (l *log) Adopt(ctx context.Context, alias session.Alias) (session.ID, error) {
	r := l.room
	id, err := r.resolve(ctx, alias)
	if err != nil {
		return "", err
	}
	if err := r.ensure(ctx, id); err != nil {
		return "", err
	}
	l.id = id
	return id, nil
}

func (l *log) Load(ctx context.Context) (session.State, []byte, error) {
	st, err := l.state()
	if errors.Is(err, session.ErrNotFound) {
		return l.room.readLegacy(ctx, l.id)
	}
	if err != nil {
		return session.State{}, nil, err
	}
	data, err := os.ReadFile(l.path(messagesFile))
	if err != nil && !missing(err) { // without messages it is merely empty
		return session.State{}, nil, err
	}
	return st, data, nil
}

func (l *log) Tail(ctx context.Context, offset int64) ([]byte, error) {
	f, err := os.Open(l.path(messagesFile))
	if missing(err) && !l.room.stored(l.id) {
		_, data, err := l.room.readLegacy(ctx, l.id)
		return data[min(offset, int64(len(data))):], err
	}
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tail(f, offset)
}

// tail reads a file from offset to its end.
func tail(f *os.File, offset int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil || info.Size() <= offset {
		return nil, err
	}
	data := make([]byte, info.Size()-offset)
	n, err := f.ReadAt(data, offset)
	if err == io.EOF { // it was cut meanwhile
		err = nil
	}
	return data[:n], err
}

func (l *log) Update(ctx context.Context, change func(session.Tx) error) error {
	return l.withLock(ctx, func() error {
		t := &tx{log: l}
		err := change(t)
		if t.file != nil {
			err = errors.Join(err, t.file.Close())
		}
		return err
	})
}

// withLock calls do while no other process changes the session.
func (l *log) withLock(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, l.room.options.LockTimeout)
	defer cancel()
	lock, err := atomicfile.OpenLocked(ctx, l.path(lockFile))
	if missing(err) {
		return session.NotFound(l.id)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if !l.room.stored(l.id) { // deleted while we waited
		return session.NotFound(l.id)
	}
	return do()
}

func (l *log) Rename(ctx context.Context, alias session.Alias) error {
	r := l.room
	if _, err := session.ParseAlias(string(alias)); err != nil {
		return err
	}
	lock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	switch id, err := r.resolve(ctx, alias); {
	case err == nil && id != l.id:
		return session.AliasInUse(alias)
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return err
	}
	return l.Update(ctx, func(t session.Tx) error {
		st, err := t.State()
		if err != nil {
			return err
		}
		if err := r.setName(alias, l.id); err != nil {
			return err
		}
		st.Alias = alias
		if err := t.SetState(st); err != nil {
			return err
		}
		return r.dropNames(l.id, alias)
	})
}

func (l *log) Owner(ctx context.Context) (*auth.Owner, error) {
	if l.room.stored(l.id) {
		return l.room.owner(l.id)
	}
	old, err := l.room.legacyByID(ctx, l.id)
	if err == nil && old == nil {
		err = session.NotFound(l.id)
	}
	return nil, err
}

func (l *log) Claim(ctx context.Context, owner auth.Owner) (has *auth.Owner, err error) {
	err = l.withLock(ctx, func() error {
		if has, err = l.room.owner(l.id); has != nil || err != nil {
			return err
		}
		has = &owner
		return l.room.replace(l.path(ownerFile), encodeOwner(owner))
	})
	if err != nil {
		return nil, err
	}
	return has, nil
}

func (l *log) path(file string) string { return l.room.path(l.id, file) }

func (l *log) state() (session.State, error) {
	src, err := os.ReadFile(l.path(stateFile))
	if missing(err) {
		return session.State{}, session.NotFound(l.id)
	}
	if err != nil {
		return session.State{}, err
	}
	st, err := session.DecodeState(l.path(stateFile), src)
	if err != nil {
		return session.State{}, err
	}
	st.Owner, err = l.room.owner(l.id)
	return st, err
}

// tx is the [session.Tx] of an update.
type tx struct {
	log  *log
	file *os.File // the messages; nil until they are needed
}

func (t *tx) open() (*os.File, error) {
	var err error
	if t.file == nil {
		t.file, err = os.OpenFile(t.log.path(messagesFile), os.O_RDWR|os.O_CREATE, 0o600)
	}
	return t.file, err
}

func (t *tx) Size() (int64, error) {
	f, err := t.open()
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (t *tx) Tail(offset int64) ([]byte, error) {
	f, err := t.open()
	if err != nil {
		return nil, err
	}
	return tail(f, offset)
}

// Append keeps what it cuts off: a user may have added it by hand.
func (t *tx) Append(size int64, data []byte) error {
	f, err := t.open()
	if err != nil {
		return err
	}
	torn, err := tail(f, size)
	if err != nil {
		return err
	}
	if len(torn) > 0 {
		if err := t.keep(torn); err != nil {
			return err
		}
		if err := f.Truncate(size); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(data, size); err != nil {
		return errors.Join(err, f.Truncate(size)) // a full disk leaves a part of it
	}
	return t.log.room.sync(f)
}

func (t *tx) keep(torn []byte) error {
	f, err := os.OpenFile(t.log.path(tornFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(torn, '\n'))
	return errors.Join(err, f.Close())
}

func (t *tx) State() (session.State, error) { return t.log.state() }

func (t *tx) SetState(st session.State) error {
	if st.Settings.Plan != "" {
		if err := t.log.room.replace(t.log.path(planFile), []byte(st.Settings.Plan)); err != nil {
			return err
		}
	}
	return t.log.room.replace(t.log.path(stateFile), st.Encode())
}
