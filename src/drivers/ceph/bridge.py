"""Calls librados, librbd and metadata servers for Cloudyard: bridge.ts starts this program and sends it requests.

One JSON object a line. Request: {"id", "op", "args"}. Response: {"id", "result"} or {"id", "error": {"errno", "message"}};
operations that may take hours also send {"id", "progress": [done, total]}. The first line is {"ready": …}.

Calls run side by side in threads, because each of them blocks. Operations that may take hours have threads of their own, so
that a lease is renewed while images are copied.

Failure modes: a connection that cannot be made, or whose client was blocklisted, ends the process; bridge.ts starts it again.
The process also ends when stdin does, so it never outlives the process that started it.
"""

import errno
import json
import os
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, TimeoutError

import rados
import rbd

# Layering, exclusive lock, object map, fast diff, deep flatten.
FEATURES = 1 | 4 | 8 | 16 | 32
CLONE_FORMAT = "2"
BLOCKLISTED = 108
# Twice the default of `osd_pg_object_context_cache_count`.
OBJECTS_IN_MEMORY = 128
MAY_RENEW = 1
EXCLUSIVE = struct.pack("<B", 1)

# Responses only: what a library prints goes to stderr.
responses = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
output = threading.Lock()
operations = {}
long_operations = set()


def send(message):
    with output:
        responses.write(json.dumps(message) + "\n")
        responses.flush()


def operation(name, long=False):
    """Registers a function as an operation. A long one also gets `progress`, a function of (done, total)."""

    def register(function):
        operations[name] = function
        if long:
            long_operations.add(name)
        return function

    return register


class Failure(Exception):
    def __init__(self, errno, message):
        super().__init__(message)
        self.errno = errno


def connect(conf, user, options):
    cluster = rados.Rados(conffile=conf, name="client." + user, conf=options)
    cluster.connect()
    return cluster


class Manager:
    """
    Commands of the manager, with the time limit of other calls. They have a connection without a time limit: librados of Debian
    12 writes the response of a command that it has ended to memory that it has freed (https://tracker.ceph.com/issues/65985).
    """

    def __init__(self, seconds, *target):
        self.seconds = seconds
        self.target = target
        self.threads = ThreadPoolExecutor(8)
        self.turn = threading.Lock()
        self.cluster = None

    def command(self, command, input):
        call = self.threads.submit(self.send, command, input)
        try:
            return call.result(self.seconds)
        except TimeoutError:
            call.cancel()
            raise Failure(errno.ETIMEDOUT, "the manager does not respond") from None

    def send(self, command, input):
        with self.turn:
            if self.cluster is None:
                self.cluster = connect(*self.target)
        return self.cluster.mgr_command(command, input)


class Connection:
    """The connection to the cluster, with one I/O context for each pool and namespace."""

    def __init__(self, conf, user, options):
        self.cluster = connect(conf, user, options)
        seconds = float(self.cluster.conf_get("rados_mon_op_timeout"))
        self.manager = Manager(seconds, conf, user, {**options, "rados_mon_op_timeout": "0"})
        self.contexts = {}
        self.turn = threading.Lock()
        self.handle = None

    def filesystems(self):
        """A handle for commands of metadata servers; it mounts nothing."""
        with self.turn:
            if self.handle is None:
                # Only regions with file shares need its package.
                import cephfs

                self.handle = cephfs.LibCephFS(rados_inst=self.cluster)
                self.handle.init()
            return self.handle

    def pool(self, name, namespace=""):
        with self.turn:
            context = self.contexts.get((name, namespace))
            if context is None:
                context = self.cluster.open_ioctx(name)
                context.set_namespace(namespace)
                self.contexts[name, namespace] = context
            return context


connection = None


@operation("command")
def command(target, command, input=""):
    """A command of the monitors or the manager, as the program `ceph` sends it."""
    call = connection.manager.command if target == "mgr" else connection.cluster.mon_command
    return output_of(*call(json.dumps(command), input.encode()))


def output_of(code, out, message):
    if code != 0:
        raise Failure(abs(code), message or os.strerror(abs(code)))
    return out.decode() if isinstance(out, bytes) else out


def number_of(error):
    """The error number; 0: unknown."""
    return abs(getattr(error, "errno", None) or 0)


@operation("mds.ranks")
def list_ranks(filesystem):
    """Fails while a rank has no metadata server: it keeps its sessions in its journal, and serves them when it has one."""
    info = json.loads(command("mon", {"prefix": "fs get", "fs_name": filesystem, "format": "json"}))
    ranks, up = sorted(info["mdsmap"]["in"]), info["mdsmap"]["up"]
    if not ranks or any(f"mds_{rank}" not in up for rank in ranks):
        raise Failure(errno.EAGAIN, f"the filesystem {filesystem} has no metadata server for each of its ranks")
    return ranks


@operation("mds.command")
def command_mds(filesystem, request):
    """Sends a command to the metadata server of each rank, and fails while a rank has none. Returns the outputs."""
    import cephfs

    outputs = []
    for rank in list_ranks(filesystem):
        try:
            response = connection.filesystems().mds_command(f"{filesystem}:{rank}", json.dumps(request), b"")
        except cephfs.Error as error:
            raise Failure(number_of(error), str(error)) from error
        outputs.append(output_of(*response))
    return outputs


# Images.


def image_at(pool, name=None, id=None, read_only=False):
    return rbd.Image(connection.pool(pool), name=name, image_id=id, read_only=read_only)


@operation("image.list")
def list_images(pool):
    return rbd.RBD().list(connection.pool(pool))


@operation("image.stat")
def stat_image(pool, name=None, id=None):
    """Id, name, size, the names of its snapshots, and its parent; null: it does not exist."""
    try:
        with image_at(pool, name, id, read_only=True) as image:
            snapshots = [
                each["name"] for each in image.list_snaps() if each["namespace"] == rbd.RBD_SNAP_NAMESPACE_TYPE_USER
            ]
            return {
                "id": image.id(),
                "name": image.get_name(),
                "size": image.size(),
                "snapshots": snapshots,
                "parent": parent_of(image),
            }
    except rbd.ImageNotFound:
        return None


def parent_of(image):
    try:
        parent = image.get_parent_image_spec()
        return {"pool": parent["pool_name"], "id": image.parent_id()}
    except rbd.ImageNotFound:
        return None


@operation("image.create")
def create_image(pool, name, size):
    rbd.RBD().create(connection.pool(pool), name, size, old_format=False, features=FEATURES)


@operation("image.clone")
def clone_image(pool, parent, snapshot, name):
    context = connection.pool(pool)
    rbd.RBD().clone(context, parent, snapshot, context, name, features=FEATURES)


@operation("image.grow")
def grow_image(pool, name, size):
    """Never shrinks."""
    with image_at(pool, name) as image:
        if image.size() < size:
            image.resize(size)
        return image.size()


@operation("image.rename")
def rename_image(pool, name, to):
    rbd.RBD().rename(connection.pool(pool), name, to)


@operation("image.finish_rename")
def finish_rename(pool, name, to, id):
    """A rename writes the object of the new name, then the directory, then removes the object of the old name."""
    try:
        connection.pool(pool).execute("rbd_directory", "rbd", "dir_rename_image", text(name) + text(to) + text(id))
    except rados.ObjectNotFound:
        pass


@operation("image.rollback", long=True)
def roll_back_image(pool, name, snapshot, progress):
    with image_at(pool, name) as image:
        image.rollback_to_snap(snapshot)


@operation("image.flatten", long=True)
def flatten_image(pool, name, progress):
    with image_at(pool, name) as image:
        if parent_of(image) is not None:
            image.flatten(on_progress=progress)


@operation("image.trash")
def trash_image(pool, name):
    """Resolves also if the image does not exist. Then its name may still have an object, which would refuse a new image."""
    context = connection.pool(pool)
    try:
        rbd.RBD().trash_move(context, name, 0)
    except rbd.ImageNotFound:
        remove_object(context, "rbd_id." + name)


def remove_object(context, object):
    try:
        context.remove_object(object)
    except rados.ObjectNotFound:
        pass


@operation("trash.list")
def list_trash(pool):
    return [{"id": each["id"], "name": each["name"]} for each in rbd.RBD().trash_list(connection.pool(pool))]


@operation("trash.remove", long=True)
def remove_from_trash(pool, id, progress):
    """Deletes the image and its data; false: a snapshot of it has clones."""
    try:
        with image_at(pool, id=id) as image:
            for each in list(image.list_snaps()):
                if each["namespace"] != rbd.RBD_SNAP_NAMESPACE_TYPE_TRASH or has_clones(image, each["id"]):
                    return False
                image.remove_snap_by_id(each["id"])
    except rbd.ImageNotFound:
        pass
    try:
        rbd.RBD().trash_remove(connection.pool(pool), id, False, on_progress=progress)
    except rbd.ImageNotFound:
        pass
    except rbd.ImageHasSnapshots:
        return False
    return True


@operation("trash.reload")
def reload_header(pool, id):
    """
    Has the OSD read the header of an image again, with its watches. If the connection of a client ends while an OSD records its
    watch, the watch has no time limit until the OSD reads it from the disk.

    An OSD keeps the last OBJECTS_IN_MEMORY objects of a placement group in memory. Objects whose locator key is the name of the
    header are in its group; these are created and removed at once.
    """
    context = connection.cluster.open_ioctx(pool)
    try:
        context.set_locator_key("rbd_header." + id)
        for call in [touch_object(context, f"cloudyard.reload.{number}") for number in range(OBJECTS_IN_MEMORY)]:
            call.wait_for_complete()
            if call.get_return_value() < 0:
                raise Failure(-call.get_return_value(), "an object cannot be created")
    finally:
        context.close()


def touch_object(context, name):
    with rados.WriteOpCtx() as op:
        op.new(rados.LIBRADOS_CREATE_IDEMPOTENT)
        op.remove()
        return context.operate_aio_write_op(op, name)


def has_clones(image, snapshot_id):
    image.set_snap_by_id(snapshot_id)
    try:
        return any(True for _ in image.list_children2())
    finally:
        image.set_snap_by_id(None)


@operation("snapshot.create")
def create_snapshot(pool, name, snapshot):
    """Resolves also if it exists."""
    with image_at(pool, name) as image:
        try:
            image.create_snap(snapshot)
        except rbd.ImageExists:
            pass
        return image.id()


@operation("snapshot.remove")
def remove_snapshot(pool, id, snapshot):
    """Resolves also if it does not exist. Clones keep its data."""
    try:
        with image_at(pool, id=id) as image:
            image.remove_snap(snapshot)
    except rbd.ImageNotFound:
        pass


@operation("snapshot.rename")
def rename_snapshot(pool, id, snapshot, to):
    with image_at(pool, id=id) as image:
        image.rename_snap(snapshot, to)


# Objects and their key-value pairs (omap).


@operation("object.list")
def list_objects(pool, namespace=""):
    return [each.key for each in connection.pool(pool, namespace).list_objects()]


@operation("omap.get")
def get_omap(pool, object, namespace="", keys=None):
    """The values of these keys; without `keys`, of all."""
    context, pairs, after = connection.pool(pool, namespace), {}, ""
    while True:
        with rados.ReadOpCtx() as op:
            if keys is None:
                found, _ = context.get_omap_vals(op, after, "", 1000)
            else:
                found, _ = context.get_omap_vals_by_keys(op, tuple(keys))
            try:
                context.operate_read_op(op, object)
                page = [(key, value.decode()) for key, value in found]
            except rados.ObjectNotFound:
                return pairs
        pairs.update(page)
        if keys is not None or len(page) < 1000:
            return pairs
        after = page[-1][0]


@operation("omap.set")
def set_omap(pool, object, pairs, namespace="", lock=None, cookie=None):
    """With a lock: fails with EBUSY unless this client has it with this cookie when the OSD writes."""
    with rados.WriteOpCtx() as op:
        context = connection.pool(pool, namespace)
        if lock is not None:
            op.execute("lock", "assert_locked", versioned(text(lock) + EXCLUSIVE + text(cookie) + text("")))
        context.set_omap(op, tuple(pairs.keys()), tuple(value.encode() for value in pairs.values()))
        context.operate_write_op(op, object)


@operation("omap.remove")
def remove_omap(pool, object, keys, namespace=""):
    with rados.WriteOpCtx() as op:
        context = connection.pool(pool, namespace)
        context.remove_omap_keys(op, tuple(keys))
        try:
            context.operate_write_op(op, object)
        except rados.ObjectNotFound:
            pass


# Locks of objects. The bindings of Debian 12 cannot list or break them, so these two call the class `lock` of the OSDs, with
# its encoding: a version, the oldest compatible version, the length, the fields.


@operation("lock.acquire")
def acquire_lock(pool, object, lock, cookie, seconds, description="", namespace=""):
    """Takes the lock for a number of seconds, or renews it; false: another client or cookie has it."""
    try:
        context = connection.pool(pool, namespace)
        context.lock_exclusive(object, lock, cookie, description, duration=seconds, flags=MAY_RENEW)
        return True
    except rados.ObjectBusy:
        return False


@operation("lock.release")
def release_lock(pool, object, lock, cookie, namespace=""):
    try:
        connection.pool(pool, namespace).unlock(object, lock, cookie)
    except rados.ObjectNotFound:
        pass


@operation("lock.holders")
def list_holders(pool, object, lock, namespace=""):
    """Holders with `client`, `cookie` and `description`; those whose time has expired are omitted."""
    try:
        _, reply = connection.pool(pool, namespace).execute(object, "lock", "get_info", versioned(text(lock)), 65536)
    except rados.ObjectNotFound:
        return []
    reader = Reader(reply)
    reader.skip_header()
    holders = []
    for _ in range(reader.number("<I")):
        reader.skip_header()
        kind, client = reader.number("<B"), reader.number("<q")
        cookie = reader.text()
        end = reader.skip_header()
        # When it expires, and the address: a marker and a structure.
        reader.at += 8 + 1
        reader.at = reader.skip_header()
        holders.append({"client": f"client.{client}", "cookie": cookie, "description": reader.text()})
        reader.at = end
    return holders


@operation("lock.break")
def break_lock(pool, object, lock, client, cookie, namespace=""):
    """Takes the lock from a holder. It does not stop the holder."""
    name = struct.pack("<Bq", 8, int(client.removeprefix("client.")))
    try:
        connection.pool(pool, namespace).execute(
            object, "lock", "break_lock", versioned(text(lock) + name + text(cookie)), 0
        )
    except rados.ObjectNotFound:
        pass


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def versioned(fields):
    return struct.pack("<BBI", 1, 1, len(fields)) + fields


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, format):
        (value,) = struct.unpack_from(format, self.data, self.at)
        self.at += struct.calcsize(format)
        return value

    def text(self):
        length = self.number("<I")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def skip_header(self):
        """Returns where the fields end."""
        self.at += 2
        return self.number("<I") + self.at


# Requests.


def serve(request):
    id, name = request["id"], request["op"]
    args = request.get("args", {})
    sent = [-1]

    def progress(done, total):
        # At most one message for each percent.
        percent = done * 100 // total if total else 0
        if percent != sent[0]:
            sent[0] = percent
            send({"id": id, "progress": [done, total]})
        return 0

    try:
        if name in long_operations:
            args = {**args, "progress": progress}
        send({"id": id, "result": operations[name](**args)})
    except (rados.Error, rbd.Error, Failure) as error:
        number = number_of(error)
        send({"id": id, "error": {"errno": number, "message": str(error)}})
        if number == BLOCKLISTED:
            os._exit(3)
    except Exception as error:
        send({"id": id, "error": {"errno": 0, "message": f"{type(error).__name__}: {error}"}})


def main():
    global connection
    settings = json.loads(sys.stdin.readline())
    options = {"rbd_default_clone_format": CLONE_FORMAT, **settings.get("options", {})}
    try:
        connection = Connection(settings["conf"], settings["user"], options)
    except rados.Error as error:
        send({"failed": {"errno": number_of(error), "message": str(error)}})
        os._exit(2)
    send(
        {
            "ready": {
                "client": f"client.{connection.cluster.get_instance_id()}",
                "address": connection.cluster.get_addrs(),
            }
        }
    )
    short, long = ThreadPoolExecutor(32), ThreadPoolExecutor(8)
    for line in sys.stdin:
        request = json.loads(line)
        (long if request["op"] in long_operations else short).submit(serve, request)
    # Threads may be blocked in calls that never return.
    os._exit(0)


main()
