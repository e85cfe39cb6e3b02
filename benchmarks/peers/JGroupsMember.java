// One member of a JGroups cluster with the SEQUENCER stack, measured; prints one line of JSON.
//
//     java -cp .:jgroups.jar JGroupsMember STACK.xml NAME SENDS SIZE LATENCY BEGIN_MS SECONDS
//
// All members begin at one time of the clock. The first one that was started is the coordinator.

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.ReceiverAdapter;

public class JGroupsMember extends ReceiverAdapter {
    static final int COMPARED = 500;
    final CRC32 digest = new CRC32();
    final Semaphore cameBack = new Semaphore(0);
    final byte name;
    volatile long begin = Long.MAX_VALUE;
    volatile long end = 0;
    long heard = 0;
    long counted = 0;

    JGroupsMember(byte name) {
        this.name = name;
    }

    @Override
    public void receive(Message message) {
        byte[] payload = message.getRawBuffer();
        int offset = message.getOffset();
        long now = System.currentTimeMillis();
        synchronized (this) {
            heard++;
            if (heard <= COMPARED) {
                digest.update(payload, offset, 9);
            }
            if (begin <= now && now < end) {
                counted++;
            }
        }
        if (payload[offset] == name) {
            cameBack.release();
        }
    }

    static void sleepUntil(long time) throws InterruptedException {
        long left = time - System.currentTimeMillis();
        if (left > 0) {
            Thread.sleep(left);
        }
    }

    static byte[] payload(byte name, long number, int size) {
        byte[] made = new byte[size];
        made[0] = name;
        for (int place = 0; place < 8; place++) {
            made[1 + place] = (byte) (number >>> (56 - 8 * place));
        }
        return made;
    }

    public static void main(String[] given) throws Exception {
        JGroupsMember member = new JGroupsMember((byte) given[1].charAt(0));
        boolean sends = given[2].equals("1");
        int size = Integer.parseInt(given[3]);
        boolean latency = given[4].equals("1");
        long start = Long.parseLong(given[5]);
        double seconds = Double.parseDouble(given[6]);
        JChannel channel = new JChannel(given[0]);
        channel.setReceiver(member);
        channel.connect("bench");
        sleepUntil(start);
        member.begin = start + 2000; // so long a Java machine takes to be warm
        member.end = member.begin + (long) (seconds * 1000);
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long used = system.getProcessCpuTime();
        List<Long> latencies = new ArrayList<>();
        long number = 0;
        while (sends && System.currentTimeMillis() < member.end) {
            long sent = System.nanoTime();
            channel.send(new Message(null, null, payload(member.name, number++, size)));
            if (latency && member.cameBack.tryAcquire(2, TimeUnit.SECONDS)) {
                latencies.add(System.nanoTime() - sent);
            }
        }
        sleepUntil(member.end + 700);
        used = system.getProcessCpuTime() - used;
        Collections.sort(latencies.subList(0, latencies.size()));
        StringBuilder all = new StringBuilder();
        for (long each : latencies) {
            all.append(all.length() == 0 ? "" : ",").append(each / 1e9);
        }
        Runtime runtime = Runtime.getRuntime();
        double memory = (runtime.totalMemory() - runtime.freeMemory()) / 1048576.0;
        synchronized (member) {
            System.out.printf(
                    "{\"rate\": %f, \"heard\": %d, \"digest\": %d, \"cpu\": %f, \"memory\": %f, \"latencies\": [%s]}%n",
                    member.counted / seconds, member.heard, member.digest.getValue(), used / 1e9, memory, all);
        }
        System.out.flush();
        channel.close();
        System.exit(0);
    }
}
