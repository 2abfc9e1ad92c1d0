package auth

import (
	"maps"
	"slices"
)

// The actions of the roles every database has.
var (
	readActions = []string{
		"changeStream", "collStats", "dbHash", "dbStats", "find", "killCursors", "listCollections",
		"listIndexes", "planCacheRead",
	}

	writeActions = []string{
		"convertToCapped", "createCollection", "createIndex", "dropCollection", "dropIndex",
		"insert", "remove", "renameCollectionSameDB", "update",
	}

	dbAdminActions = []string{
		"bypassDocumentValidation", "collMod", "collStats", "compact", "convertToCapped", "createCollection",
		"createIndex", "dbHash", "dbStats", "dropCollection", "dropDatabase", "dropIndex", "enableProfiler",
		"indexStats", "listCollections", "listIndexes", "planCacheIndexFilter", "planCacheRead", "planCacheWrite",
		"reIndex", "renameCollectionSameDB", "storageDetails", "validate",
	}

	userAdminActions = []string{
		"changeCustomData", "changePassword", "createRole", "createUser", "dropRole", "dropUser", "grantRole",
		"revokeRole", "setAuthenticationRestriction", "viewRole", "viewUser",
	}
)

// The actions of the roles for the server as a whole.
var (
	monitorActions = []string{
		"checkFreeMonitoringStatus", "connPoolStats", "getCmdLineOpts", "getLog", "getParameter", "getShardMap",
		"hostInfo", "inprog", "listDatabases", "listSessions", "listShards", "netstat", "replSetGetConfig",
		"replSetGetStatus", "serverStatus", "setFreeMonitoring", "shardingState", "top",
	}

	hostActions = []string{
		"applicationMessage", "closeAllDatabases", "connPoolSync", "flushRouterConfig", "fsync", "invalidateUserCache",
		"killAnyCursor", "killAnySession", "killop", "logRotate", "resync", "setParameter", "shutdown", "touch",
		"unlock",
	}

	managerActions = []string{
		"addShard", "appendOplogNote", "applicationMessage", "cleanupOrphaned", "flushRouterConfig", "listSessions",
		"listShards", "removeShard", "replSetConfigure", "replSetGetConfig", "replSetGetStatus", "replSetStateChange",
		"resync", "setFeatureCompatibilityVersion", "setFreeMonitoring",
	}
)

func on(r Resource, actions ...[]string) Privilege { return Privilege{r, slices.Concat(actions...)} }

// databaseRoles are the built-in roles that every database has.
var databaseRoles = map[string]func(db string) []Privilege{
	"read": func(db string) []Privilege {
		return []Privilege{on(Database(db), readActions), on(Collection(db, "system.js"), readActions)}
	},
	"readWrite": func(db string) []Privilege {
		return []Privilege{
			on(Database(db), readActions, writeActions),
			on(Collection(db, "system.js"), readActions, writeActions),
		}
	},
	"dbAdmin": func(db string) []Privilege {
		return []Privilege{
			on(Database(db), dbAdminActions),
			on(Collection(db, "system.profile"), readActions, []string{"dropCollection"}),
		}
	},
	"userAdmin": func(db string) []Privilege {
		return []Privilege{on(Database(db), userAdminActions)}
	},
	"dbOwner": func(db string) []Privilege {
		return []Privilege{
			on(Database(db), readActions, writeActions, dbAdminActions, userAdminActions),
			on(Collection(db, "system.js"), readActions, writeActions),
			on(Collection(db, "system.profile"), readActions, []string{"dropCollection"}),
		}
	},
	"enableSharding": func(db string) []Privilege {
		return []Privilege{on(Database(""), []string{"enableSharding", "refineCollectionShardKey"})}
	},
}

// adminRoles are the built-in roles of the database admin.
var adminRoles map[string]func() []Privilege

func init() { // Some are made of others.
	usersAndRoles := func(actions ...[]string) []Privilege {
		return []Privilege{
			on(Collection("admin", "system.users"), actions...),
			on(Collection("admin", "system.roles"), actions...),
		}
	}
	listing := on(Cluster(), []string{"listDatabases"})
	adminRoles = map[string]func() []Privilege{
		"readAnyDatabase": func() []Privilege {
			return append(databaseRoles["read"](""), listing)
		},
		"readWriteAnyDatabase": func() []Privilege {
			return append(databaseRoles["readWrite"](""), listing)
		},
		"dbAdminAnyDatabase": func() []Privilege {
			return append(databaseRoles["dbAdmin"](""), listing)
		},
		"userAdminAnyDatabase": func() []Privilege {
			own := []Privilege{
				on(Database(""), userAdminActions),
				on(Cluster(), []string{"authSchemaUpgrade", "invalidateUserCache", "listDatabases"}),
			}
			return append(own, usersAndRoles(readActions, []string{"createIndex", "dropIndex"})...)
		},
		"clusterMonitor": func() []Privilege {
			return []Privilege{
				on(Cluster(), monitorActions),
				on(Database(""), []string{"collStats", "dbStats", "getShardVersion", "indexStats", "useUUID"}),
				on(Database("config"), readActions), on(Database("local"), readActions),
			}
		},
		"hostManager": func() []Privilege {
			return []Privilege{on(Cluster(), hostActions), on(Database(""), []string{"killCursors", "killAnyCursor"})}
		},
		"clusterManager": func() []Privilege {
			return []Privilege{
				on(Cluster(), managerActions),
				on(Database(""), []string{
					"clearJumboFlag", "enableSharding", "moveChunk", "splitChunk", "splitVector",
					"refineCollectionShardKey",
				}),
				on(Database("config"), readActions, writeActions),
			}
		},
		"clusterAdmin": func() []Privilege {
			all := slices.Concat(adminRoles["clusterMonitor"](), adminRoles["hostManager"](),
				adminRoles["clusterManager"]())
			return append(all, on(Database(""), []string{"dropDatabase"}))
		},
		"backup": func() []Privilege {
			return append(usersAndRoles(readActions), on(Database(""), readActions),
				on(Cluster(), []string{"appendOplogNote", "getParameter", "listDatabases"}))
		},
		"restore": func() []Privilege {
			return append(usersAndRoles(readActions, writeActions),
				on(Database(""), writeActions, []string{"bypassDocumentValidation", "collMod", "listCollections"}),
				on(Database(""), userAdminActions))
		},
		"root": func() []Privilege {
			all := slices.Concat(adminRoles["clusterAdmin"](), adminRoles["userAdminAnyDatabase"](),
				adminRoles["dbAdminAnyDatabase"](),
				adminRoles["readWriteAnyDatabase"](), adminRoles["backup"](), adminRoles["restore"]())
			return append(all, on(Database(""), []string{"validate"}))
		},
		"__system": func() []Privilege {
			return []Privilege{on(Resource{Any: true}, []string{"anyAction"})}
		},
	}
}

// Builtin returns the privileges of a built-in role.
func Builtin(r RoleName) ([]Privilege, bool) {
	if f, ok := databaseRoles[r.Role]; ok {
		return f(r.DB), true
	}
	if f, ok := adminRoles[r.Role]; ok && r.DB == "admin" {
		return f(), true
	}
	return nil, false
}

// Builtins returns the names of the built-in roles a database has, sorted.
func Builtins(db string) []RoleName {
	var list []RoleName
	names := slices.Collect(maps.Keys(databaseRoles))
	if db == "admin" {
		names = slices.AppendSeq(names, maps.Keys(adminRoles))
	}
	slices.Sort(names)
	for _, n := range names {
		list = append(list, RoleName{n, db})
	}
	return list
}
