package server

import (
	"maps"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// commands are all that clients can ask for.
var commands map[string]*command

func init() { // Some look commands up.
	commands = map[string]*command{
		"hello":            {run: runHello, open: true, hello: true},
		"isMaster":         {run: runHello, open: true, hello: true},
		"ismaster":         {run: runHello, open: true, hello: true},
		"ping":             {run: runPing, open: true},
		"buildInfo":        {run: runBuildInfo, open: true},
		"buildinfo":        {run: runBuildInfo, open: true},
		"whatsmyuri":       {run: runWhatsMyURI, open: true},
		"saslStart":        {run: runSASLStart, open: true},
		"saslContinue":     {run: runSASLContinue, open: true},
		"logout":           {run: runLogout, open: true},
		"connectionStatus": {run: runConnectionStatus, open: true},
		"listCommands":     {run: runListCommands, open: true},

		"startSession":            {run: runStartSession},
		"endSessions":             {run: runEndSessions},
		"refreshSessions":         {run: runOK},
		"killSessions":            {run: runOK},
		"abortTransaction":        {run: runNoTransaction, admin: true},
		"commitTransaction":       {run: runNoTransaction, admin: true},
		"getFreeMonitoringStatus": {run: runOK, need: cluster("checkFreeMonitoringStatus"), admin: true},

		"find":          {run: runFind, need: onCollection("find")},
		"getMore":       {run: runGetMore},
		"killCursors":   {run: runKillCursors},
		"count":         {run: runCount, need: onCollection("find")},
		"distinct":      {run: runDistinct, need: onCollection("find")},
		"aggregate":     {run: runAggregate, need: needAggregate},
		"explain":       {run: runExplain, need: needExplain},
		"insert":        {run: runInsert, need: onCollection("insert")},
		"update":        {run: runUpdate, need: needUpdate},
		"delete":        {run: runDelete, need: onCollection("remove")},
		"findAndModify": {run: runFindAndModify, need: needFindAndModify},
		"findandmodify": {run: runFindAndModify, need: needFindAndModify},

		"create":           {run: runCreate, need: onCollection("createCollection")},
		"drop":             {run: runDrop, need: onCollection("dropCollection")},
		"dropDatabase":     {run: runDropDatabase, need: onDatabase("dropDatabase")},
		"renameCollection": {run: runRename, need: needRename, admin: true},
		"listCollections":  {run: runListCollections, need: needListCollections},
		"listDatabases":    {run: runListDatabases, admin: true},
		"listIndexes":      {run: runListIndexes, need: onCollection("listIndexes")},
		"createIndexes":    {run: runCreateIndexes, need: onCollection("createIndex")},
		"dropIndexes":      {run: runDropIndexes, need: onCollection("dropIndex")},
		"deleteIndexes":    {run: runDropIndexes, need: onCollection("dropIndex")},
		"validate":         {run: runValidate, need: onCollection("validate")},

		"createUser":               {run: runCreateUser, need: needs(onDatabase("createUser"), granted("grantRole"))},
		"updateUser":               {run: runUpdateUser, need: needUpdateUser},
		"dropUser":                 {run: runDropUser, need: onDatabase("dropUser")},
		"dropAllUsersFromDatabase": {run: runDropAllUsers, need: onDatabase("dropUser")},
		"grantRolesToUser":         {run: runGrantToUser, need: granted("grantRole")},
		"revokeRolesFromUser":      {run: runRevokeFromUser, need: granted("revokeRole")},
		"usersInfo":                {run: runUsersInfo, need: needUsersInfo},

		"createRole":               {run: runCreateRole, need: needs(onDatabase("createRole"), granted("grantRole"))},
		"updateRole":               {run: runUpdateRole, need: needs(onDatabase("revokeRole"), granted("grantRole"))},
		"dropRole":                 {run: runDropRole, need: onDatabase("dropRole")},
		"dropAllRolesFromDatabase": {run: runDropAllRoles, need: onDatabase("dropRole")},
		"grantRolesToRole":         {run: runGrantToRole, need: granted("grantRole")},
		"revokeRolesFromRole":      {run: runRevokeFromRole, need: granted("revokeRole")},
		"grantPrivilegesToRole":    {run: runGrantPrivileges, need: onDatabase("grantRole")},
		"revokePrivilegesFromRole": {run: runRevokePrivileges, need: onDatabase("revokeRole")},
		"rolesInfo":                {run: runRolesInfo, need: onDatabase("viewRole")},
		"invalidateUserCache":      {run: runOK, need: cluster("invalidateUserCache"), admin: true},

		"dbStats":          {run: runDBStats, need: onDatabase("dbStats")},
		"dbstats":          {run: runDBStats, need: onDatabase("dbStats")},
		"collStats":        {run: runCollStats, need: onCollection("collStats")},
		"collstats":        {run: runCollStats, need: onCollection("collStats")},
		"serverStatus":     {run: runServerStatus, need: cluster("serverStatus")},
		"getParameter":     {run: runGetParameter, need: cluster("getParameter"), admin: true},
		"getLog":           {run: runGetLog, need: cluster("getLog"), admin: true},
		"getCmdLineOpts":   {run: runGetCmdLineOpts, need: cluster("getCmdLineOpts"), admin: true},
		"hostInfo":         {run: runHostInfo, need: cluster("hostInfo")},
		"currentOp":        {run: runCurrentOp, need: cluster("inprog"), admin: true},
		"replSetGetStatus": {run: runReplSetGetStatus, need: cluster("replSetGetStatus"), admin: true},
		"replSetGetConfig": {run: runReplSetGetStatus, need: cluster("replSetGetConfig"), admin: true},
		"fsync":            {run: runFsync, need: cluster("fsync"), admin: true},
		"shutdown":         {run: runShutdown, need: cluster("shutdown"), admin: true},
	}
}

func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

type needFunc = func(*call) ([]need, error)

func cluster(action string) needFunc {
	return func(*call) ([]need, error) { return []need{{auth.Cluster(), action}}, nil }
}

func onDatabase(action string) needFunc {
	return func(k *call) ([]need, error) { return []need{{auth.Database(k.db), action}}, nil }
}

func onCollection(actions ...string) needFunc {
	return func(k *call) ([]need, error) {
		coll, err := k.coll()
		var list []need
		for _, a := range actions {
			list = append(list, need{auth.Collection(k.db, coll), a})
		}
		return list, err
	}
}

// needs is all of several needs.
func needs(all ...needFunc) needFunc {
	return func(k *call) ([]need, error) {
		var list []need
		for _, f := range all {
			more, err := f(k)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
		return list, nil
	}
}

func granted(action string) needFunc {
	return func(k *call) ([]need, error) { return granting(k, action) }
}

func needUpdate(k *call) ([]need, error) {
	actions := []string{"update"}
	for _, u := range value.Items(value.Inner(value.Get(k.body, "updates"))) {
		if value.Truthy(value.Get(value.Inner(u), "upsert")) {
			actions = append(actions, "insert")
			break
		}
	}
	return onCollection(actions...)(k)
}

func needFindAndModify(k *call) ([]need, error) {
	actions := []string{"find", "update"}
	if k.flag("remove") {
		actions[1] = "remove"
	}
	if k.flag("upsert") {
		actions = append(actions, "insert")
	}
	return onCollection(actions...)(k)
}

func needAggregate(k *call) ([]need, error) {
	coll, _ := value.Str(value.Get(k.body, k.name))
	list := []need{{auth.Collection(k.db, coll), "find"}}
	for _, name := range lookups(value.Get(k.body, "pipeline")) {
		list = append(list, need{auth.Collection(k.db, name), "find"})
	}
	return list, nil
}

func needExplain(k *call) ([]need, error) {
	_, v := value.First(value.Inner(value.Get(k.body, "explain")))
	coll, _ := value.Str(v)
	return []need{{auth.Collection(k.db, coll), "find"}}, nil
}

func needRename(k *call) ([]need, error) {
	from, _ := value.Str(value.Get(k.body, "renameCollection"))
	to, _ := value.Str(value.Get(k.body, "to"))
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	if fromDB == toDB {
		return []need{
			{auth.Collection(fromDB, fromName), "renameCollectionSameDB"},
			{auth.Collection(toDB, toName), "renameCollectionSameDB"},
		}, nil
	}
	return []need{
		{auth.Collection(fromDB, fromName), "find"},
		{auth.Collection(fromDB, fromName), "dropCollection"},
		{auth.Collection(toDB, toName), "insert"},
		{auth.Collection(toDB, toName), "createIndex"},
	}, nil
}

// needListCollections asks for no privilege of a user who wants only the names of what it may read.
func needListCollections(k *call) ([]need, error) {
	if k.flag("nameOnly") && k.flag("authorizedCollections") {
		return nil, nil
	}
	return onDatabase("listCollections")(k)
}

func needUpdateUser(k *call) ([]need, error) {
	var list []need
	own := k.isOwn(value.Get(k.body, k.name))
	if value.Exists(value.Get(k.body, "pwd")) {
		list = append(list, need{auth.Database(k.db), "changePassword"})
	}
	if value.Exists(value.Get(k.body, "customData")) {
		list = append(list, need{auth.Database(k.db), "changeCustomData"})
	}
	if own && len(list) > 0 && auth.Allows(k.conn.privileges(), auth.Database(k.db), "changeOwnPassword") {
		list = nil
	}
	if value.Missing(value.Get(k.body, "roles")) {
		return list, nil
	}
	more, err := granting(k, "grantRole")
	return append(append(list, need{auth.Database(k.db), "revokeRole"}), more...), err
}

// needUsersInfo asks for no privilege of a user who looks at itself.
func needUsersInfo(k *call) ([]need, error) {
	which := value.Get(k.body, "usersInfo")
	if value.IsDoc(which) && value.Truthy(value.Get(which.Data, "forAllDBs")) {
		return []need{{auth.Cluster(), "listDatabases"}, {auth.Database(adminDB), "viewUser"}}, nil
	}
	if k.isOwn(which) {
		return nil, nil
	}
	return onDatabase("viewUser")(k)
}
