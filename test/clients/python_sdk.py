"""Tests of the official Python SDK against a running Cloudyard.

python-sdk.test.ts starts the server and runs this file with a Python that has the package `gcore`. Every response is
validated strictly against the SDK's model, because the SDK builds its models without validation.

`GET /test/hold` and `/test/release` block and release the host of the file shares.
"""

import asyncio
import json
import os
import re
import time
import unittest
import uuid
from datetime import datetime, timezone

import httpx
from gcore import (
    AsyncGcore,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    DefaultHttpxClient,
    Gcore,
    NotFoundError,
    PermissionDeniedError,
)
from gcore.resources.cloud.tasks import TasksResource
from gcore.types.cloud import Task
from pydantic import TypeAdapter

SETUP = json.loads(os.environ["CLOUDYARD_SDK_TEST"])

# The filter `task_type` documents them; the model takes any text.
TASK_TYPES = re.findall(r"'(\w+)'", re.search(r"by their type one of\s+(\[.*?\])", TasksResource.list.__doc__, re.DOTALL)[1])


class StrictGcore(Gcore):
    def _process_response(self, *, cast_to, response, **others):
        if response.content:
            valid = TypeAdapter(cast_to).validate_json(response.content, strict=True)
            if isinstance(valid, Task) and valid.task_type not in TASK_TYPES:
                raise AssertionError(f"{valid.task_type} is not a task type of the SDK")
        return super()._process_response(cast_to=cast_to, response=response, **others)


def client(token="admin", **options):
    return StrictGcore(
        api_key=SETUP["tokens"].get(token, token),
        base_url=SETUP["url"],
        cloud_project_id=SETUP["project_id"],
        cloud_region_id=1,
        polling_interval_seconds=1,
        polling_timeout_seconds=60,
        **options,
    )


def a_name(what):
    return f"{what} {uuid.uuid4().hex[:8]}"


class CloudTestCase(unittest.TestCase):
    def setUp(self):
        self.client = client()
        self.cloud = self.client.cloud
        self.addCleanup(self.client.close)

    def eventually(self, is_true, seconds=30):
        deadline = time.monotonic() + seconds
        while not is_true():
            self.assertLess(time.monotonic(), deadline, "the condition never became true")
            time.sleep(0.1)

    def a_network(self, cidr="10.0.0.0/24"):
        network = self.cloud.networks.create_and_poll(name=a_name("network"))
        self.cloud.networks.subnets.create_and_poll(name="a subnet", network_id=network.id, cidr=cidr)
        return network

    def a_share(self, **changes):
        network = {"network_id": self.a_network().id}
        given = {"name": a_name("share"), "protocol": "NFS", "size": 1, "network": network, **changes}
        return self.cloud.file_shares.create_and_poll(**given)


class Networks(CloudTestCase):
    def test_network_life_cycle(self):
        networks = self.cloud.networks
        made = networks.create_and_poll(name="frontend", type="vxlan", create_router=True, tags={"b": "2", "a": "1"})
        self.assertEqual([(tag.key, tag.value) for tag in made.tags], [("a", "1"), ("b", "2")])
        self.assertIsNotNone(made.created_at.tzinfo)
        renamed = networks.update_and_poll(made.id, name="backend", tags={"a": None, "c": "3"})
        self.assertEqual((renamed.name, [tag.key for tag in renamed.tags]), ("backend", ["b", "c"]))
        self.assertEqual(len(networks.update(made.id, name="middle").tasks), 1)
        self.assertEqual(networks.update(made.id, name="middle").tasks, [])
        self.assertEqual(networks.update_and_poll(made.id, tags=None).tags, [])
        given = {"order_by": "name.asc", "owned_by": "project", "network_type": "vxlan", "external": False}
        self.assertEqual([network.id for network in networks.list(name="middle", **given)], [made.id])
        networks.update_and_poll(made.id, tags={"env": "test"})
        for given in ({"tag_key": ["env"]}, {"tag_key_value": json.dumps({"env": "test"})}):
            self.assertIn(made.id, [network.id for network in networks.list(**given)])
        networks.delete_and_poll(made.id)
        with self.assertRaises(NotFoundError):
            networks.get(made.id)

    def test_subnet_life_cycle(self):
        subnets = self.cloud.networks.subnets
        network = self.cloud.networks.create_and_poll(name=a_name("network"))
        route = {"destination": "10.20.0.0/16", "nexthop": "10.9.0.7"}
        made = subnets.create_and_poll(
            name="first",
            network_id=network.id,
            cidr="10.9.0.0/24",
            ip_version=4,
            gateway_ip="10.9.0.1",
            dns_nameservers=["8.8.8.8"],
            host_routes=[route],
            tags={"a": "1"},
        )
        self.assertEqual((made.gateway_ip, made.dns_nameservers, len(made.host_routes)), ("10.9.0.1", ["8.8.8.8"], 1))
        nothing = {"gateway_ip": None, "dns_nameservers": [], "host_routes": None, "tags": None}
        left = subnets.update(made.id, name="second", **nothing)
        self.assertEqual((left.name, left.gateway_ip, left.host_routes, left.tags), ("second", None, [], []))
        sixth = subnets.create_and_poll(name="six", network_id=network.id, cidr="fd00::/64", gateway_ip=None)
        listed = subnets.list(network_id=network.id, order_by="name.asc", limit=1)
        self.assertEqual([subnet.id for subnet in listed], [made.id, sixth.id])
        for subnet in (made, sixth):
            self.assertEqual(len(subnets.delete(subnet.id).tasks), 1)
        self.cloud.networks.delete_and_poll(network.id)


class FileShares(CloudTestCase):
    def test_share_life_cycle(self):
        shares = self.cloud.file_shares
        made = self.a_share(
            access=[{"access_mode": "rw", "ip_address": "10.0.0.0/24"}],
            tags={"k": "v"},
            type_name="standard",
            volume_type="default_share_type",
        )
        self.assertEqual((made.status, made.size, made.task_id), ("available", 1, None))
        self.assertEqual(made.share_settings.type_name, "standard")
        self.assertIsNone(datetime.fromisoformat(made.created_at).tzinfo)
        self.assertTrue(made.connection_point)
        self.assertIn(made.id, [share.id for share in shares.list(name=made.name, type_name="standard", limit=1)])

        self.assertEqual(shares.update_and_poll(made.id, name="renamed").name, "renamed")
        self.assertEqual([tag.key for tag in shares.update_and_poll(made.id, tags={"k": None, "n": "1"}).tags], ["n"])
        self.assertEqual(shares.update_and_poll(made.id, tags=None).tags, [])
        self.assertEqual(shares.update_and_poll(made.id, name="renamed").name, "renamed")
        squashed = shares.update_and_poll(made.id, share_settings={"root_squash": True})
        self.assertIs(squashed.share_settings.to_dict()["root_squash"], True)

        self.assertEqual(shares.resize_and_poll(made.id, size=3).size, 3)
        # docs/decisions/0012-same-size.md
        self.assertEqual(shares.resize(made.id, size=3).tasks, [])
        shares.delete_and_poll(made.id)
        with self.assertRaises(NotFoundError):
            shares.get(made.id)

    def test_vast_share_settings(self):
        settings = {"allowed_characters": "LCD", "path_length": "NPL", "root_squash": False}
        made = self.cloud.file_shares.create_and_poll(
            name="a vast share", protocol="NFS", size=1, type_name="vast", share_settings=settings
        )
        self.assertEqual((made.type_name, made.volume_type, made.share_network_name), ("vast", "vast_share_type", None))
        self.assertEqual({**made.share_settings.to_dict(), **settings}, made.share_settings.to_dict())
        self.assertIn(made.id, [share.id for share in self.cloud.file_shares.list(type_name="vast")])

    def test_create_and_delete_access_rules(self):
        rules = self.cloud.file_shares.access_rules
        share = self.a_share(access=[{"access_mode": "ro", "ip_address": "10.0.0.0/24"}])
        made = rules.create(share.id, access_mode="rw", ip_address="10.0.1.1")
        self.assertEqual((made.access_level, made.access_to), ("rw", "10.0.1.1"))
        self.assertEqual([rule.access_to for rule in rules.list(share.id, limit=1)], ["10.0.0.0/24", "10.0.1.1"])
        self.assertEqual([rule.id for rule in rules.list(share.id, limit=1, offset=1).results], [made.id])
        rules.delete(made.id, file_share_id=share.id)
        again = rules.create(share.id, access_mode="ro", ip_address="10.0.1.1")
        self.assertEqual([rule.id for rule in rules.list(share.id) if rule.access_to == "10.0.1.1"], [again.id])

    def test_asynchronous_client(self):
        async def create_and_delete(network_id):
            options = {"cloud_project_id": SETUP["project_id"], "cloud_region_id": 1, "polling_interval_seconds": 1}
            async with AsyncGcore(api_key=SETUP["tokens"]["admin"], base_url=SETUP["url"], **options) as asynchronous:
                shares = asynchronous.cloud.file_shares
                network = {"network_id": network_id}
                made = await shares.create_and_poll(name="asynchronous", protocol="NFS", size=1, network=network)
                await shares.delete_and_poll(made.id)
                return made.status

        self.assertEqual(asyncio.run(create_and_delete(self.a_network().id)), "available")


class Registries(CloudTestCase):
    def test_registry_life_cycle(self):
        registries = self.cloud.registries
        self.assertEqual(registries.list().count, 0)
        made = registries.create(name="images", storage_limit=7)
        self.assertEqual((made.storage_limit, made.storage_used, made.repo_count), (7, 0, 0))
        self.assertTrue(made.url.endswith(f"/images-{made.id}"))
        self.assertEqual(registries.resize(made.id, storage_limit=6).storage_limit, 6)
        self.assertEqual([each.id for each in registries.list().results], [made.id])
        self.assertEqual(registries.repositories.list(made.id).results, [])
        with self.assertRaises(NotFoundError):
            registries.artifacts.list("team/app", registry_id=made.id)
        with self.assertRaises(ConflictError):
            registries.create(name="images")
        with self.assertRaises(BadRequestError):
            registries.create(name="Images")
        registries.delete(made.id)
        with self.assertRaises(NotFoundError):
            registries.get(made.id)

    def test_create_and_delete_registry_users(self):
        registries = self.cloud.registries
        made = registries.create(name="with-users")
        users = registries.users
        first = users.create(made.id, name="ci", duration=14, secret="chosen")
        self.assertEqual((first.secret, (first.expires_at - first.created_at).days), ("chosen", 14))
        more = users.create_multiple(
            made.id, users=[{"name": "a", "duration": -1}, {"name": "b", "duration": 0, "read_only": True}]
        )
        self.assertEqual([each.name for each in more.results], ["a", "b"])
        self.assertEqual(len({each.secret for each in more.results}), 2)
        changed = users.update(first.id, registry_id=made.id, duration=1, read_only=True)
        self.assertEqual((changed.duration, changed.read_only), (1, True))
        self.assertNotEqual(users.refresh_secret(first.id, registry_id=made.id).secret, "chosen")
        users.delete(first.id, registry_id=made.id)
        self.assertEqual([each.name for each in users.list(made.id).results], ["a", "b"])
        registries.delete(made.id)


class Volumes(CloudTestCase):
    def a_volume(self, **changes):
        return self.cloud.volumes.create_and_poll(**{"name": a_name("volume"), "source": "new-volume", "size": 2, **changes})

    def a_snapshot(self, **given):
        made = self.cloud.tasks.poll(self.cloud.volume_snapshots.create(**given).tasks[0])
        return self.cloud.volume_snapshots.get(made.created_resources.snapshots[0])

    def until_available(self, volume_id):
        deadline = time.monotonic() + 30
        while (volume := self.cloud.volumes.get(volume_id)).status != "available" and time.monotonic() < deadline:
            time.sleep(0.05)
        return volume

    def test_volume_life_cycle(self):
        volumes, snapshots = self.cloud.volumes, self.cloud.volume_snapshots
        made = self.a_volume(tags={"k": "v"}, type_name="standard")
        self.assertEqual((made.status, made.size, made.task_id, made.bootable), ("available", 2, None, False))
        self.assertIsNotNone(made.created_at.tzinfo)
        given = {"name_part": made.name, "id_part": made.id[:8], "has_attachments": False, "tag_key": ["k"]}
        self.assertEqual([volume.id for volume in volumes.list(**given)], [made.id])
        renamed = volumes.update(made.id, name="renamed", tags={"k": None, "n": "1"})
        self.assertEqual((renamed.name, [tag.key for tag in renamed.tags]), ("renamed", ["n"]))
        self.assertEqual(volumes.resize_and_poll(made.id, size=3).size, 3)

        with self.assertRaises(ConflictError):
            volumes.revert_to_last_snapshot(made.id)
        taken = self.a_snapshot(name="a snapshot", volume_id=made.id, description="text", tags={"a": "1"})
        self.assertEqual((taken.status, taken.size, taken.volume_id), ("available", 3, made.id))
        self.assertEqual([snapshot.id for snapshot in snapshots.list(volume_id=made.id)], [taken.id])
        self.assertEqual(snapshots.update(taken.id, name="renamed", tags=None).tags, [])
        self.assertIsNone(volumes.revert_to_last_snapshot(made.id))
        self.assertEqual(self.until_available(made.id).snapshot_ids, [taken.id])

        copy = self.a_volume(source="snapshot", snapshot_id=taken.id, size=3)
        self.assertEqual(copy.volume_type, "standard")
        self.assertEqual(volumes.change_type(made.id, volume_type="ssd_hiiops").volume_type, "ssd_hiiops")
        with self.assertRaises(BadRequestError):
            volumes.attach_to_instance(made.id, instance_id=copy.id)
        volumes.delete_and_poll(made.id)
        with self.assertRaises(NotFoundError):
            snapshots.get(taken.id)
        single = self.a_snapshot(name="another", volume_id=copy.id)
        self.cloud.tasks.poll(snapshots.delete(single.id).tasks[0])
        volumes.delete_and_poll(copy.id)
        with self.assertRaises(BadRequestError):
            volumes.create(name="a volume", source="image", image_id=copy.id, size=1)


class SnapshotSchedules(CloudTestCase):
    def test_policy_life_cycle(self):
        schedules = self.cloud.snapshot_schedules
        # The SDK's model always has volumes; the API returns them only with need_volumes.
        shown = {"extra_query": {"need_volumes": "true"}}
        volume = self.cloud.volumes.create_and_poll(name=a_name("volume"), source="new-volume", size=2)
        daily = {"type": "cron", "hour": "3", "day_of_week": "mon,fri", "timezone": "Europe/Luxembourg", "max_quantity": 3}
        hourly = {"type": "interval", "hours": 1, "retention_time": {"days": 1}}
        given = {"action": "volume_snapshot", "name": a_name("policy"), "volume_ids": [volume.id]}
        made = schedules.create(**given, schedules=[daily], **shown)
        self.assertEqual((made.status, [one.volume_id for one in made.volumes]), ("active", [volume.id]))
        self.assertEqual((made.schedules[0].hour, made.schedules[0].week), ("3", None))
        more = schedules.add_schedules(made.id, schedules=[hourly], **shown)
        self.assertEqual([one.type for one in more.schedules], ["cron", "interval"])
        self.assertEqual(more.schedules[1].retention_time.days, 1)
        left = schedules.remove_schedules(made.id, schedule_ids=[more.schedules[0].id], **shown)
        self.assertEqual([one.id for one in left.schedules], [more.schedules[1].id])
        self.assertEqual(schedules.update(made.id, status="paused", **shown).status, "paused")
        self.assertEqual(schedules.remove_volumes(made.id, volume_ids=[volume.id], **shown).volumes, [])
        self.assertEqual(len(schedules.add_volumes(made.id, volume_ids=[volume.id], **shown).volumes), 1)
        self.assertEqual(schedules.get(made.id, **shown).status, "paused")
        self.assertIn(made.id, [policy.id for policy in schedules.list(**shown).results])
        usage = schedules.estimate_max_usage(**given, schedules=[daily])
        self.assertEqual((usage.max_volume_snapshot_count_usage, usage.max_volume_snapshot_size_usage), (3, 6))
        with self.assertRaises(BadRequestError):
            schedules.create(**given, schedules=[{"type": "cron", "hour": "25"}])
        schedules.delete(made.id)
        with self.assertRaises(NotFoundError):
            schedules.get(made.id, **shown)


class LoadBalancers(CloudTestCase):
    def test_pool_monitor_and_member_life_cycle(self):
        balancers, tasks = self.cloud.load_balancers, self.cloud.tasks
        self.a_network()
        listener = {"name": "web", "protocol": "HTTP", "protocol_port": 80, "connection_limit": -1}
        name = a_name("balancer")
        made = balancers.create_and_poll(name=name, flavor="lb1-1-2", tags={"a": "1"}, listeners=[listener])
        self.assertEqual(balancers.get(made.id, show_stats=True).flavor.flavor_name, "lb1-1-2")
        # The server reads the operating status from its driver periodically.
        online = {"name": name, "operating_status": "ONLINE", "provisioning_status": "ACTIVE", "limit": 1}
        self.eventually(lambda: [each.id for each in balancers.list(**online)] == [made.id])
        web = balancers.listeners.get(made.listeners[0].id)
        self.assertEqual(web.connection_limit, 100000)
        self.assertEqual(balancers.listeners.update_and_poll(web.id, name="renamed", secret_id=None).name, "renamed")

        monitor = {"type": "HTTP", "delay": 10, "timeout": 5, "max_retries": 3, "expected_codes": "200,300-302"}
        pool = balancers.pools.create_and_poll(
            name="a pool", lb_algorithm="ROUND_ROBIN", protocol="HTTP", listener_id=web.id, healthmonitor=monitor
        )
        self.assertEqual((pool.healthmonitor.expected_codes, pool.healthmonitor.url_path), ("200,300-302", "/"))
        monitors = balancers.pools.health_monitors
        tasks.poll(monitors.update(pool.id, delay=20, expected_codes=None).tasks[0])
        self.assertEqual((monitors.get(pool.id).delay, monitors.get(pool.id).expected_codes), (20, "200"))
        whole = {"type": "TCP", "delay": 10, "timeout": 5, "max_retries": 3}
        self.assertEqual(balancers.pools.update_and_poll(pool.id, healthmonitor=whole).healthmonitor.type, "TCP")
        monitors.delete(pool.id)
        tasks.poll(monitors.create(pool.id, type="PING", delay=10, api_timeout=5, max_retries=3).tasks[0])

        members = balancers.pools.members
        first = members.create_and_poll(pool.id, address="127.0.0.1", protocol_port=9001)
        tasks.poll(members.update(first.id, pool_id=pool.id, weight=7, monitor_port=9009).tasks[0])
        self.assertEqual((members.get(first.id, pool_id=pool.id).weight, first.weight), (7, 1))
        body = [{"address": "127.0.0.1", "protocol_port": port} for port in (9001, 9002)]
        tasks.poll(members.replace(pool.id, body=body).tasks[0])
        self.assertEqual({each.protocol_port for each in members.list(pool.id, order_by="address.asc")}, {9001, 9002})
        members.delete_and_poll(first.id, pool_id=pool.id)
        self.assertEqual([each.protocol_port for each in members.list(pool.id)], [9002])

        balancers.statuses.get(made.id)
        self.assertGreater(balancers.flavors.list(include_prices=True).count, 0)
        balancers.metrics.list(made.id, time_interval=1, time_unit="hour")
        self.assertEqual(balancers.resize_and_poll(made.id, flavor="lb1-2-4").flavor.flavor_name, "lb1-2-4")
        self.assertEqual(balancers.failover_and_poll(made.id).id, made.id)
        balancers.delete_and_poll(made.id)
        with self.assertRaises(NotFoundError):
            balancers.get(made.id)


class L7Policies(CloudTestCase):
    def setUp(self):
        super().setUp()
        self.balancers = self.cloud.load_balancers
        self.policies = self.balancers.l7_policies
        self.a_network()
        balancer = self.balancers.create_and_poll(
            name="balanced", listeners=[{"name": "web", "protocol": "HTTP", "protocol_port": 80}]
        )
        self.balancer, self.listener = balancer.id, balancer.listeners[0].id

    def test_policy_and_rule_life_cycle(self):
        pool = self.balancers.pools.create_and_poll(
            name="a pool", lb_algorithm="ROUND_ROBIN", protocol="HTTP", load_balancer_id=self.balancer
        )
        given = {"listener_id": self.listener, "tags": ["a", "b"]}
        rejecting = self.policies.create_and_poll(action="REJECT", name="a policy", **given)
        pooling = self.policies.create_and_poll(action="REDIRECT_TO_POOL", redirect_pool_id=pool.id, **given)
        prefixing = self.policies.create_and_poll(
            action="REDIRECT_PREFIX", redirect_prefix="https://a.example", position=1, **given
        )
        self.assertEqual((prefixing.position, prefixing.redirect_http_code), (1, 302))
        self.assertEqual([self.policies.get(p.id).position for p in (rejecting, pooling)], [2, 3])
        with self.assertRaises(ConflictError):
            self.balancers.pools.delete(pool.id)

        updated = self.policies.update_and_poll(
            rejecting.id, action="REDIRECT_TO_URL", redirect_url="https://b.example/", redirect_http_code=308, position=3
        )
        self.assertEqual((updated.redirect_url, updated.redirect_http_code), ("https://b.example/", 308))
        self.assertEqual((updated.name, updated.tags, updated.position), ("a policy", ["a", "b"], 3))

        rules = self.policies.rules
        rule = rules.create_and_poll(updated.id, compare_type="REGEX", type="HEADER", key="x-tier", value="^g(old)?$")
        self.assertEqual((rule.key, rule.invert, rule.provisioning_status), ("x-tier", False, "ACTIVE"))
        replaced = rules.replace_and_poll(
            rule.id, l7policy_id=updated.id, type="HEADER", compare_type="EQUAL_TO", value="silver", invert=True
        )
        self.assertEqual((replaced.value, replaced.invert, replaced.key), ("silver", True, "x-tier"))
        self.assertEqual([r.id for r in rules.list(updated.id).results], [rule.id])
        self.assertEqual([r.id for r in self.policies.get(updated.id).rules], [rule.id])
        self.assertEqual(rules.get(rule.id, l7policy_id=updated.id).id, rule.id)
        with self.assertRaises(BadRequestError):
            rules.create(updated.id, compare_type="REGEX", type="PATH", value="(")
        rules.delete_and_poll(rule.id, l7policy_id=updated.id)

        self.assertEqual(len(self.policies.list().results), 3)
        self.balancers.statuses.get(self.balancer)
        for policy in (rejecting, pooling, prefixing):
            self.policies.delete_and_poll(policy.id)
        with self.assertRaises(NotFoundError):
            self.policies.get(rejecting.id)


class Tasks(CloudTestCase):
    def test_list_poll_and_acknowledge_tasks(self):
        tasks = self.cloud.tasks
        before = datetime.now(timezone.utc).replace(microsecond=0)
        started = [self.cloud.networks.create(name=a_name("network")).tasks[0] for _ in range(3)]
        self.assertEqual([tasks.poll(task).state for task in started], ["FINISHED"] * 3)
        given = {
            "task_type": "create_network",
            "state": ["FINISHED", "ERROR"],
            "project_id": [SETUP["project_id"]],
            "region_id": [1],
            "is_acknowledged": False,
            "from_timestamp": before,
            "to_timestamp": "2999-01-01T00:00:00",
        }
        newest = [task.id for task in tasks.list(**given, order_by="desc", limit=2)]
        self.assertEqual(newest[:3], started[::-1])
        self.assertEqual([task.id for task in tasks.list(**given, sorting="asc", limit=2)], newest[::-1])
        known = tasks.acknowledge_one(started[0])
        self.assertTrue(known.acknowledged_at)
        self.assertEqual([task.id for task in tasks.list(**given)][:2], started[:0:-1])
        tasks.acknowledge_all(project_id=SETUP["project_id"], region_id=1)
        self.assertEqual(list(tasks.list(**given)), [])
        with self.assertRaises(NotFoundError):
            tasks.get(str(uuid.uuid4()))


class Places(CloudTestCase):
    def test_project_life_cycle(self):
        projects = self.cloud.projects
        name = a_name("project")
        made = projects.create(name=name, description=None)
        self.assertFalse(made.is_default)
        changed = projects.update(project_id=made.id, name=f"{name} 2", description="for tests")
        self.assertEqual((changed.name, changed.description), (f"{name} 2", "for tests"))
        self.assertEqual([project.id for project in projects.list(name=name, order_by="created_at.desc")], [made.id])
        ended = self.cloud.tasks.poll(projects.delete(project_id=made.id).tasks[0])
        self.assertEqual(ended.state, "FINISHED")
        with self.assertRaises(NotFoundError):
            projects.get(project_id=made.id)
        deleted = [project for project in projects.list(include_deleted=True, limit=1) if project.id == made.id]
        self.assertEqual([project.state for project in deleted], ["DELETED"])

    def test_get_regions_and_quotas(self):
        [region] = self.cloud.regions.list(order_by="display_name.asc", show_volume_types=True)
        self.assertEqual(self.cloud.regions.get(region_id=region.id, show_volume_types=True), region)
        client_id = self.cloud.projects.get().client_id
        everything = self.cloud.quotas.get_all()
        here = self.cloud.quotas.get_by_region(client_id=client_id, region_id=region.id)
        self.assertEqual(everything.regional_quotas[0].to_dict(), here.to_dict())
        self.assertEqual(everything.global_quotas.to_dict(), self.cloud.quotas.get_global(client_id).to_dict())
        self.assertGreater(here.sfs_count_limit, 0)
        self.assertGreaterEqual(everything.global_quotas.project_count_usage, 1)


class QuotaRequests(CloudTestCase):
    def test_create_list_and_delete_requests(self):
        requests = self.cloud.quotas.requests
        limits = {
            "global_limits": {"project_count_limit": 300, "inference_public_model_api_key_count_limit": 4},
            "regional_limits": [{"region_id": 1, "volume_count_limit": 5000, "slurm_cluster_count_limit": 2}],
        }
        before = datetime.now(timezone.utc).replace(microsecond=0)
        self.assertIsNone(requests.create(description="a larger archive", requested_limits=limits))
        given = {"status": ["in progress", "done"], "created_from": before, "created_to": "2999-01-01T00:00:00Z"}
        [made] = requests.list(**given, limit=1)
        self.assertEqual((made.status, made.description, made.updated_at), ("in progress", "a larger archive", None))
        got = requests.get(made.id)
        self.assertEqual(got.requested_limits.to_dict(), limits)
        self.assertEqual([one.id for one in requests.list(request_ids=[made.id, 999999])], [made.id])
        for refused in ({"project_count_limit": 0}, {}):
            with self.assertRaises(BadRequestError):
                requests.create(description="nothing", requested_limits={"global_limits": refused})
        requests.delete(made.id)
        with self.assertRaises(NotFoundError):
            requests.get(made.id)


class AuditLogs(CloudTestCase):
    def test_list_user_actions(self):
        volume = self.cloud.volumes.create_and_poll(name=a_name("volume"), source="new-volume", size=2)
        self.cloud.volumes.resize_and_poll(volume.id, size=3)
        self.cloud.volumes.delete_and_poll(volume.id)
        given = {
            "action_type": ["create", "resize", "delete", "get_logs"],
            "api_group": ["volume", "slurm"],
            "project_id": [SETUP["project_id"]],
            "region_id": [1],
            "resource_id": [volume.id],
            "source_user_ips": ["127.0.0.1"],
            "from_timestamp": datetime(2020, 1, 1, tzinfo=timezone.utc),
            "to_timestamp": "2999-01-01T00:00:00Z",
        }
        entries = list(self.cloud.audit_logs.list(**given, order_by="asc", limit=2))
        self.assertEqual([entry.action_type for entry in entries], ["create", "resize", "delete"])
        self.assertEqual({entry.resources[0].resource_id for entry in entries}, {volume.id})
        self.assertEqual(entries[0].task_id, volume.creator_task_id)
        newest = list(self.cloud.audit_logs.list(**given, sorting="desc", search_field=volume.name))
        self.assertEqual([entry.action_type for entry in newest], ["delete", "create"])


class Errors(CloudTestCase):
    def test_set_cross_and_delete_threshold(self):
        client_id = self.cloud.projects.list().results[0].client_id
        threshold = self.cloud.quotas.notification_threshold
        self.assertEqual((threshold.get(client_id).threshold, threshold.get(client_id).last_sending), (80, None))
        # One project of a limit of one hundred is one percent.
        changed = threshold.update(client_id=client_id, threshold=1, last_message=None, last_sending=None)
        self.assertEqual((changed.client_id, changed.threshold), (client_id, 1))
        deadline = time.monotonic() + 20
        while threshold.get(client_id).last_sending is None and time.monotonic() < deadline:
            time.sleep(0.1)
        crossed = threshold.get(client_id)
        figure = crossed.last_message.global_quotas.project_count_usage
        self.assertGreaterEqual(figure.usage * 100, figure.limit)
        self.assertEqual(crossed.last_message.global_quotas.project_count_limit.to_dict(), figure.to_dict())
        self.assertEqual([region.region_id for region in crossed.last_message.regional_quotas], [1])
        # The API accepts values that it returned.
        threshold.update(client_id=client_id, threshold=2, last_message=crossed.last_message.to_dict(), last_sending=crossed.last_sending)
        threshold.delete(client_id)
        self.assertEqual((threshold.get(client_id).threshold, threshold.get(client_id).last_message), (80, None))

    def counting_client(self):
        """A client and the statuses of all its responses, including retries."""
        statuses = []
        hooks = {"response": [lambda response: statuses.append(response.status_code)]}
        return client(http_client=DefaultHttpxClient(event_hooks=hooks)), statuses

    def host(self, what):
        httpx.get(f"{SETUP['url']}/test/{what}")

    def test_errors_map_to_sdk_classes(self):
        network = {"network_id": self.a_network().id}
        with self.assertRaises(BadRequestError) as refused:
            self.cloud.file_shares.create(name="-", protocol="SMB", size=0, network=network)
        self.assertEqual({error["path"] for error in refused.exception.body["errors"]}, {"name", "protocol", "size"})
        with self.assertRaises(AuthenticationError):
            client("nobody$wrong").cloud.projects.list()
        with self.assertRaises(PermissionDeniedError):
            client("reader").cloud.networks.create(name="a network")
        with self.assertRaises(NotFoundError):
            client("other").cloud.file_shares.list()
        with self.assertRaises(NotFoundError):
            self.cloud.file_shares.list(region_id=99)

    def test_permanent_errors_are_not_retried(self):
        network = self.a_network()
        counting, statuses = self.counting_client()
        with self.assertRaises(ConflictError) as refused:
            counting.cloud.networks.delete(network.id)
        self.assertEqual((refused.exception.body["exception_class"], statuses), ("InUse", [409]))
        with self.assertRaises(ConflictError) as refused:
            counting.cloud.file_shares.create(
                name="too big", protocol="NFS", size=999_999_999, network={"network_id": network.id}
            )
        self.assertEqual((refused.exception.body["exception_class"], statuses), ("QuotaExceeded", [409, 409]))

    def test_conflicts_name_the_task_and_retries_succeed(self):
        shares = self.cloud.file_shares
        share = self.a_share()
        self.host("hold")
        self.addCleanup(self.host, "release")
        [task] = shares.resize(share.id, size=2).tasks
        locked = shares.get(share.id)
        self.assertEqual((locked.status, locked.size, locked.task_id), ("extending", 1, task))
        with self.assertRaises(ConflictError) as refused:
            client(max_retries=0).cloud.file_shares.update(share.id, name="renamed")
        self.assertIn(task, refused.exception.body["message"])

        counting, statuses = self.counting_client()
        counting._client.event_hooks["response"].append(
            lambda response: self.host("release") if response.status_code == 409 else None
        )
        counting.cloud.file_shares.update(share.id, name="renamed")
        self.assertEqual((statuses[0], statuses[-1]), (409, 200))
        self.assertEqual((shares.get(share.id).name, shares.get(share.id).size), ("renamed", 2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
