// Members of a JGroups cluster with the FLUSH stack, all in this process, that come and go while all send.
//
//     java -cp .:jgroups.jar JGroupsViews STACK.xml MEMBERS TIMES STATE_BYTES
//
// Prints a line of JSON for each view change, in milliseconds, and one for the transfer of a state.

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jgroups.Address;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.ExtendedReceiverAdapter;
import org.jgroups.View;

public class JGroupsViews extends ExtendedReceiverAdapter implements Runnable {
    static final long GAP_MS = 5;
    static final double MS = 1e6;
    static volatile long suspected = Long.MAX_VALUE;
    static int stateBytes;

    final JChannel channel;
    final Map<Long, Long> views = new ConcurrentHashMap<>(); // when it was told each view
    final Map<Long, Long> first = new ConcurrentHashMap<>(); // when it was delivered the first message in each
    volatile long view = -1;
    volatile boolean talks = true;
    long last = 0;
    long longest = 0;
    long loaded = 0;

    JGroupsViews(String stack) throws Exception {
        channel = new JChannel(stack);
        channel.setReceiver(this);
        channel.connect("views");
        new Thread(this).start();
    }

    @Override
    public void run() {
        try {
            while (talks) {
                channel.send(new Message(null, null, new byte[16]));
                Thread.sleep(GAP_MS);
            }
        } catch (Exception closed) {
            // it has left
        }
    }

    @Override
    public void viewAccepted(View accepted) {
        views.put(accepted.getVid().getId(), System.nanoTime());
        view = accepted.getVid().getId();
    }

    @Override
    public void suspect(Address member) {
        suspected = Math.min(suspected, System.nanoTime());
    }

    @Override
    public synchronized void receive(Message message) {
        long now = System.nanoTime();
        first.putIfAbsent(view, now);
        longest = last == 0 ? 0 : Math.max(longest, now - last);
        last = now;
    }

    synchronized long longestPause() {
        long found = longest;
        longest = 0;
        return found;
    }

    @Override
    public void getState(OutputStream out) {
        byte[] part = new byte[1 << 16];
        try (out) {
            for (long sent = 0; sent < stateBytes; sent += part.length) {
                out.write(part);
            }
        } catch (IOException gone) {
            throw new IllegalStateException(gone);
        }
    }

    @Override
    public void setState(InputStream in) {
        byte[] part = new byte[1 << 16];
        try (in) {
            for (int got = in.read(part); got >= 0; got = in.read(part)) {
                loaded += got;
            }
        } catch (IOException gone) {
            throw new IllegalStateException(gone);
        }
    }

    /** Waits until all that stay were delivered something in a view after that one. */
    static void tell(String event, List<JGroupsViews> stay, long before, long asked) throws Exception {
        for (JGroupsViews each : stay) {
            while (each.view <= before || !each.first.containsKey(each.view)) {
                Thread.sleep(1);
            }
        }
        long since = event.contains("crash") ? Math.max(asked, Math.min(suspected, System.nanoTime())) : asked;
        long told = 0;
        long any = Long.MAX_VALUE;
        long all = 0;
        long pause = 0;
        for (JGroupsViews each : stay) {
            told = Math.max(told, each.views.get(each.view));
            any = Math.min(any, each.first.get(each.view));
            all = Math.max(all, each.first.get(each.view));
            pause = Math.max(pause, each.longestPause());
        }
        System.out.printf("{\"event\": \"%s\", \"view\": %f, \"first\": %f, \"all\": %f, \"pause\": %f}%n", event,
                (told - since) / MS, (any - since) / MS, (all - since) / MS, pause / MS);
    }

    static List<JGroupsViews> settled(List<JGroupsViews> members) throws Exception {
        Thread.sleep(300);
        for (JGroupsViews each : members) {
            each.longestPause();
        }
        return new ArrayList<>(members);
    }

    static void join(List<JGroupsViews> members, String stack, boolean told) throws Exception {
        List<JGroupsViews> stay = settled(members);
        long before = members.isEmpty() ? -1 : members.get(0).view;
        long asked = System.nanoTime();
        members.add(new JGroupsViews(stack));
        if (told) {
            tell("a member joins", stay, before, asked);
        }
    }

    static void go(List<JGroupsViews> members, int place, boolean crashes) throws Exception {
        List<JGroupsViews> stay = settled(members);
        JGroupsViews gone = members.remove(place);
        stay.remove(place);
        long before = gone.view;
        gone.talks = crashes;
        suspected = Long.MAX_VALUE;
        long asked = System.nanoTime();
        Thread ending = new Thread(crashes ? gone.channel::shutdown : gone.channel::close);
        ending.start();
        tell((place == 0 ? "first member " : "last member ") + (crashes ? "crashes" : "leaves"), stay, before, asked);
        gone.talks = false;
    }

    public static void main(String[] given) throws Exception {
        String stack = given[0];
        int size = Integer.parseInt(given[1]);
        int times = Integer.parseInt(given[2]);
        stateBytes = Integer.parseInt(given[3]);
        List<JGroupsViews> members = new ArrayList<>();
        while (members.size() < size - 1) {
            join(members, stack, false);
        }
        for (int time = 0; time < times; time++) {
            for (boolean crashes : new boolean[] {false, true}) {
                join(members, stack, true);
                go(members, size - 1, crashes);
                join(members, stack, true);
                go(members, 0, crashes);
            }
        }
        join(members, stack, false);
        settled(members);
        JGroupsViews newest = members.get(members.size() - 1);
        long asked = System.nanoTime();
        boolean got = newest.channel.getState(null, 60000);
        double seconds = (System.nanoTime() - asked) / 1e9;
        System.out.printf("{\"event\": \"state\", \"complete\": %b, \"rate\": %f, \"pause\": %f}%n",
                got && newest.loaded >= stateBytes, newest.loaded / 1e6 / seconds, members.get(1).longestPause() / MS);
        System.out.flush();
        System.exit(0);
    }
}
